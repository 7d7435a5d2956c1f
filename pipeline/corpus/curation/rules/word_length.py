"""Gopher keeps documents whose words have 3 to 10 characters on average; marks do not count."""

from __future__ import annotations

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText, ratio
from pipeline.corpus.curation.rule import gopher_quality
from pipeline.corpus.curation.words import HAS_MORE_THAN_MARKS


def mean_word_length(text: MeasuredText) -> np.ndarray:
    """Characters; NaN without words, which other rules are for."""
    is_word = text.words.kinds & HAS_MORE_THAN_MARKS > 0
    words = text.total_of_words(is_word)
    length = ratio(text.total_of_words(text.words.characters * is_word), words)
    return np.where(words > 0, length, np.nan)


MIN_LENGTH = gopher_quality("gopher_min_word_length", mean_word_length, minimum=3, highest=1000)
MAX_LENGTH = gopher_quality("gopher_max_word_length", mean_word_length, maximum=10, highest=1000)
