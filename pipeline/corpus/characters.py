"""Tables over all Unicode code points, for kernels that walk UTF-8 bytes."""

from __future__ import annotations

import functools
import itertools
import sys
import unicodedata
from collections.abc import Callable, Iterable

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.base.files import toml_beside

NUM_CODE_POINTS = sys.maxunicode + 1
# Beyond these code points Unicode has private use only, and a few format characters and variation
# selectors around U+E0000.
_ASSIGNED = (range(0x32400), range(0xE0000, 0xE0200))
# Blocks of letters without case, of surrogates and of private use: two thirds of the assigned code
# points. Some of their ends are not assigned.
_CASELESS_RANGES = (
    (0x3400, 0x4DBF),  # CJK ideographs, extension A
    (0x4E00, 0x9FFF),  # CJK ideographs
    (0xAC00, 0xD7A3),  # Hangul syllables
    (0xD800, 0xDFFF),  # surrogates
    (0xE000, 0xF8FF),  # private use
    (0x17000, 0x18CFF),  # Tangut and Khitan
    (0x20000, 0x2F7FF),  # CJK ideographs, extensions B to F
    (0x2FA20, 0x323FF),  # CJK ideographs, extensions G and H
)

FIRST_WIDE_BYTE = 0xE3  # of UTF-8: of characters from U+3000 on, which have two columns

# Actions of cleaning for a code point.
KEEP = 0
BLANK = 1
REMOVE = 2
COMPOSE = 3
KEEP_INSIDE = 4
# Classes of code points for the sentence splitter. TERMINATOR needs a space after it to end a
# sentence, WIDE_TERMINATOR (of scripts without spaces) does not; PUNCTUATION begins none.
OTHER = 0
UPPER = 1
LOWER = 2
DIGIT = 3
SPACE = 4
TERMINATOR = 5
WIDE_TERMINATOR = 6
OPENER = 7
CLOSER = 8
QUOTE = 9
DASH = 10
PUNCTUATION = 11
GREEK_QUESTION = 12  # punctuation, but a terminator after a Greek letter
_KINDS = {
    **dict.fromkeys(("Ps", "Pi"), OPENER),
    **dict.fromkeys(("Pe", "Pf"), CLOSER),
    "Nd": DIGIT,
    "Pd": DASH,
    "Po": PUNCTUATION,
}
_RANGES = toml_beside(__file__, "characters.toml")
WITHOUT_SPACES: list[tuple[int, int]] = _RANGES["without_spaces"]
_TERMINATORS = ".!?\u2026"
# Ethiopic words may have U+1361 between them instead of spaces, so its full stops are wide.
_WIDE_TERMINATORS = (
    "\u3002\uff01\uff1f\uff0e\uff61\u17d4\u17d5\u1362\u1367\u1368"
    "\ufe12\ufe15\ufe16\ufe52\ufe56\ufe57"
)
# Opening in one language, closing in another.
_QUOTES = "\"'\u201c\u2018\u00ab\u00bb\u2039\u203a"
_OPENERS = "\u201e\u201a\u00bf\u00a1"
_CLOSERS = "\u2019\u201d\u300d\u300f\u1361"
# Georgian (Mkhedruli) has capitals in Unicode that texts do not use.
_UNUSED_CASE = range(0x10D0, 0x1100)
_BEGIN_LISTS = "*#@\u2022\u00a7\u2020\u2021"


@functools.cache
def _other_code_points() -> list[int]:
    """Return all assigned code points that are in none of the caseless ranges."""
    is_other = np.zeros(NUM_CODE_POINTS, bool)
    for assigned in _ASSIGNED:
        is_other[assigned.start : assigned.stop] = True
    for first, last in _CASELESS_RANGES:
        is_other[first : last + 1] = False
    return np.flatnonzero(is_other).tolist()


def code_point_table(
    kind_of: Callable[[str, str], int],
    default: int,
    dtype: type = np.uint8,
    *,
    caseless: int | None = None,
) -> np.ndarray:
    """Make a table over all code points.

    Args:
        kind_of: maps a character and its Unicode category to its entry.
        default: entry of the code points in planes without characters.
        dtype: of the table.
        caseless: the result of `kind_of` for all letters without case, surrogates, code points for
            private use and code points that are not assigned, if it is the same for all of them:
            saves two thirds of the time. None calls `kind_of` for all characters.

    Returns:
        [NUM_CODE_POINTS].
    """
    table: np.ndarray = np.full(NUM_CODE_POINTS, default, dtype)
    code_points: Iterable[int] = itertools.chain(*_ASSIGNED)
    if caseless is not None:
        for first, last in _CASELESS_RANGES:
            table[first : last + 1] = caseless
        code_points = _other_code_points()
    for code_point in code_points:
        character = chr(code_point)
        table[code_point] = kind_of(character, unicodedata.category(character))
    return table


@functools.cache
def cleaning_table(*, controls: bool = True, whitespace: bool = True) -> np.ndarray:
    """Return the treatment of each code point: uint8 [NUM_CODE_POINTS], KEEP to KEEP_INSIDE.

    COMPOSE is kept but may need NFC; KEEP_INSIDE is removed only at the ends of a line.

    Args:
        controls: whether to remove control characters and byte-order marks.
        whitespace: whether to replace white space inside a line.
    """

    def treatment(character: str, category: str) -> int:
        if character.isspace():
            return BLANK if whitespace else KEEP_INSIDE
        if category == "Cc":
            return BLANK if controls else KEEP
        if character == "\ufeff":
            return REMOVE if controls else KEEP
        may_combine = (
            category in ("Mn", "Mc")
            or "\u1160" <= character < "\u1200"  # Hangul vowels and final consonants
            or not unicodedata.is_normalized("NFC", character)
        )
        return COMPOSE if may_combine else KEEP

    return code_point_table(treatment, KEEP, caseless=KEEP)


@functools.cache
def sentence_table() -> np.ndarray:
    """Return the class of each code point, OTHER to GREEK_QUESTION; uint8 [NUM_CODE_POINTS]."""

    def kind_of(character: str, category: str) -> int:
        if ord(character) in _UNUSED_CASE:
            return OTHER
        if character.isupper() or category == "Lt":
            return UPPER
        if character.islower():
            return LOWER
        return _KINDS.get(category, SPACE if character.isspace() else OTHER)

    table = code_point_table(kind_of, OTHER, caseless=OTHER)
    for bounds in _RANGES["terminators"]:
        table[bounds[0] : bounds[-1] + 1] = TERMINATOR
    for characters, kind in (
        (";\u037e", GREEK_QUESTION),
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
    """Return the code point at a byte of valid UTF-8, and its width in bytes."""
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
def kind_at(data, position, table):
    """Return the class of the code point at a position, by a table of classes, and its bytes."""
    code_point, width = decode(data, position)
    return table[code_point], width


@numba.njit(cache=True, inline="always")
def valid_width(data, position, stop):
    """Return the bytes of the UTF-8 character at a position, 0 if it is not valid (RFC 3629)."""
    lead = np.int64(data[position])
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    width = 4
    if lead < 0xE0:
        width = 2
    elif lead < 0xF0:
        width = 3
    if position + width > stop:
        return 0
    second = np.int64(data[position + 1])
    lowest = 0x80
    highest = 0xBF
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
