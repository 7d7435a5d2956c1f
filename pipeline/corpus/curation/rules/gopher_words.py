"""Gopher keeps documents of ordinary length, with ordinary words (Rae et al. 2021, A.1.1).

These are 50 to 100,000 words, of 3 to 10 characters on average, which mostly have a letter, with
two of eight English stop words. In scripts without spaces each character is a word: their length
and stop words say nothing.
"""

from __future__ import annotations

import numpy as np

from bert_tf.base.kernels import fnv1a
from pipeline.corpus.curation.measures import MeasuredText, ratio
from pipeline.corpus.curation.rule import gopher_quality
from pipeline.corpus.curation.words import HAS_LETTER, HAS_MORE_THAN_MARKS, IS_CHARACTER

_MOST = 1e9
_MOST_CHARACTERS = 0.5  # of the words: more, and the text is of a script without spaces
_STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")


def count_words(text: MeasuredText) -> np.ndarray:
    """Count words; marks do not count."""
    return text.total_of_words(text.words.kinds & HAS_MORE_THAN_MARKS > 0)


def has_no_spaces(text: MeasuredText) -> np.ndarray:
    """bool [documents]: whether most words are characters of scripts without spaces."""
    characters = text.total_of_words(text.words.kinds & IS_CHARACTER > 0)
    return characters > _MOST_CHARACTERS * count_words(text)


def mean_word_length(text: MeasuredText) -> np.ndarray:
    """Return the mean characters of words; NaN without any, and in scripts without spaces."""
    is_word = text.words.kinds & HAS_MORE_THAN_MARKS > 0
    words = text.total_of_words(is_word)
    length = ratio(text.total_of_words(text.words.characters * is_word), words)
    return np.where((words > 0) & ~has_no_spaces(text), length, np.nan)


def words_with_letters(text: MeasuredText) -> np.ndarray:
    """Return the share of words and marks that have a letter."""
    return ratio(text.total_of_words(text.words.kinds & HAS_LETTER > 0), text.num_words)


def distinct_stop_words(text: MeasuredText) -> np.ndarray:
    """Count which of the eight stop words a document has; NaN in scripts without spaces."""
    num_distinct = np.zeros(text.num_documents)
    for word in _STOP_WORDS:
        sought = np.uint64(fnv1a(np.frombuffer(word.encode(), np.uint8), 0, len(word)))
        num_distinct += text.total_of_words(text.words.hashes == sought) > 0
    return np.where(has_no_spaces(text), np.nan, num_distinct)


LENGTHS = [
    gopher_quality("gopher_min_words", count_words, minimum=50, highest=_MOST),
    gopher_quality("gopher_max_words", count_words, maximum=100_000, highest=_MOST),
    gopher_quality("gopher_min_word_length", mean_word_length, minimum=3, highest=1000),
    gopher_quality("gopher_max_word_length", mean_word_length, maximum=10, highest=1000),
]
LETTERS = gopher_quality("gopher_min_letter_words", words_with_letters, minimum=0.8)
STOP_WORDS = gopher_quality("gopher_min_stop_words", distinct_stop_words, minimum=2, highest=8)
