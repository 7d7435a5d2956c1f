"""BERT's punctuation as ranges of code points, for array functions and graphs.

The basic tokenizer makes a word of every punctuation mark and every ideograph, so that two words
without a blank between them meet at one of these.
"""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np

from bert_tf.data.text.normalizer import IDEOGRAPHS, is_ideograph

_ASCII_PUNCTUATION = frozenset(
    chr(code)
    for begin, end in ((33, 48), (58, 65), (91, 97), (123, 127))
    for code in range(begin, end)
)
# Punctuation of Unicode 15 and 16, which tensorflow_text knows and Python 3.11 and 3.12 do not.
_LATER_PUNCTUATION = re.compile(
    "[\u1b4e\u1b4f\u1b7f\U00010d6e\U000113d4\U000113d5\U000113d7\U000113d8\U00011b00-\U00011b09"
    "\U00011be1\U00011f43-\U00011f4f\U00016d6d-\U00016d6f\U0001e5ff]"
)
_NO_PUNCTUATION_FROM = 0x20000  # ideographs, tags and private use follow


def is_punctuation(character: str) -> bool:
    """Return whether the basic tokenizer takes a character for punctuation."""
    if character in _ASCII_PUNCTUATION or _LATER_PUNCTUATION.fullmatch(character):
        return True
    return unicodedata.category(character).startswith("P")


def is_word_alone(character: str) -> bool:
    """Return whether a normalized character is always a word of its own.

    These are punctuation, ASCII symbols and ideographs.
    """
    return is_punctuation(character) or is_ideograph(character)


@functools.cache
def punctuation_bounds() -> np.ndarray:
    """Return where ranges of punctuation begin and end, int32 [2 * ranges], ascending.

    A code point is punctuation if an odd number of bounds is at most as high.
    """
    is_mark = [is_punctuation(chr(code)) for code in range(_NO_PUNCTUATION_FROM)]
    return np.flatnonzero(np.diff(is_mark, prepend=False, append=False)).astype(np.int32)


def are_punctuation(codes: np.ndarray) -> np.ndarray:
    """Return whether each code point, int [n], is punctuation, bool [n]."""
    return np.searchsorted(punctuation_bounds(), codes, side="right") % 2 == 1


def are_words_alone(codes: np.ndarray) -> np.ndarray:
    """Return whether each code point, int [n], is punctuation or an ideograph, bool [n]."""
    bounds = [bound for first, last in sorted(IDEOGRAPHS) for bound in (first, last + 1)]
    is_ideograph = np.searchsorted(bounds, codes, side="right") % 2 == 1
    return are_punctuation(codes) | is_ideograph
