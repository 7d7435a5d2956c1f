"""Tables over all Unicode code points, for kernels that walk UTF-8 bytes."""

from __future__ import annotations

import functools
import sys
import unicodedata

import numba
import numpy as np

NUM_CODE_POINTS = sys.maxunicode + 1
# Beyond these code points Unicode has private use only, and a few format characters and variation
# selectors around U+E0000: the tables' loops leave the rest at its default.
ASSIGNED = (*range(0x32400), *range(0xE0000, 0xE0200))

# What cleaning does with a code point.
KEEP, BLANK, REMOVE, COMPOSE, KEEP_INSIDE = 0, 1, 2, 3, 4


@functools.cache
def cleaning_table(*, controls: bool = True, whitespace: bool = True) -> np.ndarray:
    """uint8 [NUM_CODE_POINTS]: KEEP, BLANK (white space and control characters), REMOVE (the
    byte-order mark), COMPOSE (kept, but text with it may not be in Unicode's form NFC) or
    KEEP_INSIDE (kept but at a line's ends).

    Args:
        controls: whether control characters are blank and byte-order marks go; else they are kept.
        whitespace: whether white space is blank; else it is kept inside a line.
    """
    table = np.full(NUM_CODE_POINTS, KEEP, np.uint8)
    for code_point in ASSIGNED:
        character = chr(code_point)
        category = unicodedata.category(character)
        if character.isspace():
            table[code_point] = BLANK if whitespace else KEEP_INSIDE
        elif category == "Cc":
            table[code_point] = BLANK if controls else KEEP
        elif code_point == 0xFEFF:
            table[code_point] = REMOVE if controls else KEEP
        elif (
            category in ("Mn", "Mc")
            or 0x1160 <= code_point < 0x1200  # Hangul vowels and final consonants
            or not unicodedata.is_normalized("NFC", character)
        ):
            table[code_point] = COMPOSE
    return table


# What a code point means to the sentence splitter. TERMINATOR needs a space after it to end a
# sentence, WIDE_TERMINATOR (of scripts without spaces) does not; PUNCTUATION begins none.
OTHER, UPPER, LOWER, DIGIT, SPACE = 0, 1, 2, 3, 4
TERMINATOR, WIDE_TERMINATOR, OPENER, CLOSER, QUOTE, DASH, PUNCTUATION = 5, 6, 7, 8, 9, 10, 11
_TERMINATORS = ".!?\u2026\u203c\u2047\u2048\u2049\u061f\u06d4\u0589\u1362\u1367\u104b\u0964\u0965"
_WIDE_TERMINATORS = "\u3002\uff01\uff1f\uff0e\uff61\u17d4\u17d5"
# Opening in one language, closing in another.
_QUOTES = "\"'\u201c\u2018\u00ab\u00bb\u2039\u203a"
_OPENERS = "\u201e\u201a\u00bf\u00a1"
_CLOSERS = "\u2019\u201d\u300d\u300f"
_BEGIN_LISTS = "*#@\u2022\u00a7\u2020\u2021"


@functools.cache
def sentence_table() -> np.ndarray:
    """uint8 [NUM_CODE_POINTS]: the class of each code point, OTHER to PUNCTUATION."""
    table = np.full(NUM_CODE_POINTS, OTHER, np.uint8)
    for code_point in ASSIGNED:
        character = chr(code_point)
        category = unicodedata.category(character)
        if character.isupper() or category == "Lt":
            table[code_point] = UPPER
        elif character.islower():
            table[code_point] = LOWER
        elif category == "Nd":
            table[code_point] = DIGIT
        elif category in ("Ps", "Pi"):
            table[code_point] = OPENER
        elif category in ("Pe", "Pf"):
            table[code_point] = CLOSER
        elif category == "Pd":
            table[code_point] = DASH
        elif category == "Po":
            table[code_point] = PUNCTUATION
        elif character.isspace():
            table[code_point] = SPACE
    for characters, kind in (
        (_TERMINATORS, TERMINATOR),
        (_WIDE_TERMINATORS, WIDE_TERMINATOR),
        (_QUOTES, QUOTE),
        (_OPENERS, OPENER),
        (_CLOSERS, CLOSER),
        (_BEGIN_LISTS, OTHER),
    ):
        for character in characters:
            table[ord(character)] = kind
    return table


@numba.njit(cache=True, inline="always")
def decode(data, position):
    """The code point at a byte of valid UTF-8, and its width in bytes."""
    lead = np.int64(data[position])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (np.int64(data[position + 1]) & 0x3F), 2
    if lead < 0xF0:
        return (
            (lead & 0x0F) << 12
            | (np.int64(data[position + 1]) & 0x3F) << 6
            | (np.int64(data[position + 2]) & 0x3F),
            3,
        )
    return (
        (lead & 0x07) << 18
        | (np.int64(data[position + 1]) & 0x3F) << 12
        | (np.int64(data[position + 2]) & 0x3F) << 6
        | (np.int64(data[position + 3]) & 0x3F),
        4,
    )


@numba.njit(cache=True, inline="always")
def valid_width(data, position, stop):
    """Bytes of the UTF-8 character at a position, 0 if it is not valid (RFC 3629)."""
    lead = np.int64(data[position])
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    width = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if position + width > stop:
        return 0
    second = np.int64(data[position + 1])
    lowest, highest = 0x80, 0xBF
    if lead == 0xE0:
        lowest = 0xA0
    elif lead == 0xED:
        highest = 0x9F  # surrogates lie beyond
    elif lead == 0xF0:
        lowest = 0x90
    elif lead == 0xF4:
        highest = 0x8F
    if second < lowest or second > highest:
        return 0
    for following in range(position + 2, position + width):
        if data[following] & 0xC0 != 0x80:
            return 0
    return width
