"""C4 drops lines and documents that are no running text (Raffel et al. 2020, section 2.2).

Lines of a few words, with an endless word, about JavaScript or policies; documents with placeholder
text or braces, or of fewer than 5 sentences. Datatrove's C4QualityFilter is the reference.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText
from pipeline.corpus.curation.rule import c4
from pipeline.corpus.curation.words import spaced_words
from pipeline.corpus.sentences import split_sentences

_POLICIES = ("terms of use", "privacy policy", "cookie policy")
_COOKIES = ("uses cookies", "use of cookies", "use cookies")


def count_words(text: MeasuredText) -> np.ndarray:
    """Count the words of lines that white space separates."""
    return spaced_words(text.data, text.starts, text.stops)[0]


def longest_word(text: MeasuredText) -> np.ndarray:
    """Count the characters of the longest word of lines."""
    return spaced_words(text.data, text.starts, text.stops)[1]


def ends_in_punctuation(text: MeasuredText) -> np.ndarray:
    """Return 1 for lines that end in a terminal punctuation mark, else 0; an ellipsis is none."""
    return (text.end_with(".", "?", "!", '"', "'") & ~text.end_with("...")).astype(np.float64)


def in_lines(text: MeasuredText, *, phrases: tuple[str, ...]) -> np.ndarray:
    """Count the occurrences of phrases in lines."""
    return sum(map(text.occurrences, phrases), np.zeros(len(text.starts)))


def in_documents(text: MeasuredText, *, phrase: str) -> np.ndarray:
    """Count the occurrences of a phrase in documents."""
    return text.total(text.occurrences(phrase))


def sentences(text: MeasuredText) -> np.ndarray:
    """Count sentences, as `sentence_splitter: rules`, of the lines that C4's rules keep."""
    return text.total(split_sentences(text.data, text.starts, text.stops)[2])


of_lines = partial(c4, highest=1000, of_lines=True)
policies = partial(in_lines, phrases=_POLICIES + _COOKIES)
RULES = [
    of_lines("c4_max_word_length", longest_word, maximum=1000, highest=1e9),
    # Not in the group: FineWeb leaves it out, since it drops a third of all text.
    of_lines("c4_terminal_punctuation", ends_in_punctuation, groups=(), minimum=1, highest=1),
    of_lines("c4_min_line_words", count_words, minimum=3),
    c4("c4_max_lorem_ipsum", partial(in_documents, phrase="lorem ipsum"), maximum=0, highest=1000),
    of_lines("c4_max_javascript", partial(in_lines, phrases=("javascript",)), maximum=0),
    c4("c4_max_braces", partial(in_documents, phrase="{"), maximum=0, highest=1e6),
    of_lines("c4_max_policies", policies, maximum=0),
    c4("c4_min_sentences", sentences, minimum=5, highest=1e6),
]
