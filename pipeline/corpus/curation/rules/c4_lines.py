"""C4 drops lines of a few words, with an endless word, about JavaScript or policies."""

from __future__ import annotations

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText
from pipeline.corpus.curation.rule import c4
from pipeline.corpus.curation.words import spaced_words

_POLICIES = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)


def count_words(text: MeasuredText) -> np.ndarray:
    return spaced_words(text.data, text.starts, text.stops)[0]


def longest_word(text: MeasuredText) -> np.ndarray:
    return spaced_words(text.data, text.starts, text.stops)[1]


def ends_in_punctuation(text: MeasuredText) -> np.ndarray:
    return (text.end_with(".", "?", "!", '"', "'") & ~text.end_with("...")).astype(np.float64)


def mentions_javascript(text: MeasuredText) -> np.ndarray:
    return text.occurrences("javascript")


def mentions_policies(text: MeasuredText) -> np.ndarray:
    return sum((text.occurrences(phrase) for phrase in _POLICIES), np.zeros(len(text.starts)))


MAX_WORD_LENGTH = c4("c4_max_word_length", longest_word, maximum=1000, highest=1e9, of_lines=True)
# Not in the group: FineWeb leaves it out, since it drops a third of all text.
TERMINAL = c4("c4_terminal_punctuation", ends_in_punctuation, groups=(), minimum=1, of_lines=True)
MIN_WORDS = c4("c4_min_line_words", count_words, minimum=3, highest=1000, of_lines=True)
JAVASCRIPT = c4("c4_max_javascript", mentions_javascript, maximum=0, highest=1000, of_lines=True)
POLICIES = c4("c4_max_policies", mentions_policies, maximum=0, highest=1000, of_lines=True)
