"""Words and marks of lines, as the published rules count them, and their n-grams."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.base.kernels import GOLDEN_RATIO, fnv1a, mix64
from pipeline.corpus.abbreviations import word_lists
from pipeline.corpus.characters import WITHOUT_SPACES, code_point_table, decode

# Classes of characters: between words, a mark by itself, part of a word, a word by itself, or part
# of a word only between two of its parts.
_SPACE = 0
_MARK = 1
_PART = 2
_ALONE = 3
_HYPHEN = 4
_CLASS = 7  # the bits of these
HAS_LETTER = 8
HAS_MORE_THAN_MARKS = 16
IS_CHARACTER = 32  # a word that is a character of a script without spaces
_MARKS_AMONG_SYMBOLS = "$+<=>^`|~"
_FULL_STOP = ord(".")
_APOSTROPHES = (ord("'"), 0x2019)
_ENDS_WORDS = (*_APOSTROPHES, 0x2026)  # wherever they are; other marks only at its end
_REPEATED = (ord("."), ord("-"), ord("'"), ord("`"))  # `...` is one mark, `!!!` are three


@dataclasses.dataclass(frozen=True)
class Words:
    """Words and marks of all lines, close to spaCy's English tokenizer: `do`, `n't`, `.`.

    Characters of scripts without spaces are words, as for near duplicates.

    Attributes:
        hashes: uint64 [words], FNV-1a of their bytes.
        characters: int64 [words].
        kinds: uint8 [words], bits HAS_LETTER, HAS_MORE_THAN_MARKS, IS_CHARACTER.
        line_offsets: int64 [lines + 1].
    """

    hashes: np.ndarray
    characters: np.ndarray
    kinds: np.ndarray
    line_offsets: np.ndarray


def find_words(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> Words:
    """Find the words and marks of lines.

    Args:
        data: uint8, UTF-8.
        starts, stops: int64 [lines], bytes of each.
    """
    return Words(*_find(data, starts, stops, _table(), word_lists().never_last))


def spaced_words(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Measure the words of lines that white space separates.

    Args:
        data: uint8, UTF-8.
        starts, stops: int64 [lines], bytes of each.

    Returns:
        Their number and the characters of the longest, int64 [lines] each.
    """
    return _measure_spaced(data, starts, stops, _table())


@functools.cache
def _table() -> np.ndarray:
    """Return the class of each code point, uint8 [NUM_CODE_POINTS]."""

    def kind_of(character: str, category: str) -> int:
        if character.isspace() or category == "Cc":
            return _SPACE
        if category[0] in "PS":
            is_mark = category[0] == "P" or character in _MARKS_AMONG_SYMBOLS
            kind = _HYPHEN if category == "Pd" or character in ",/:<>=" else _MARK
            return kind if is_mark else kind | HAS_MORE_THAN_MARKS
        kind = _PART | HAS_MORE_THAN_MARKS
        return kind | HAS_LETTER if character.isalpha() else kind

    table = code_point_table(kind_of, _PART | HAS_MORE_THAN_MARKS)
    for first, last in WITHOUT_SPACES:
        table[first : last + 1][table[first : last + 1] & _CLASS == _PART] += _ALONE - _PART
    return table


@numba.njit(cache=True, nogil=True)
def _find(data, starts, stops, table, abbreviations):
    """Find the words and marks of lines, from left to right.

    The class of its first character decides where a word ends. Its hash, length and kinds are taken
    in a second pass over its characters.

    Args:
        data, starts, stops: see `find_words`.
        table: of `_table`.
        abbreviations: uint64, rising: hashes of words that keep their full stop.

    Returns:
        The fields of `Words`.
    """
    capacity = (stops - starts).sum()  # a word has a byte or more
    hashes = np.empty(capacity, np.uint64)
    characters = np.empty(capacity, np.int64)
    kinds = np.empty(capacity, np.uint8)
    offsets = np.zeros(len(starts) + 1, np.int64)
    num_words = 0
    for line in range(len(starts)):
        position, stop = starts[line], stops[line]
        follows_word = False
        while position < stop:
            code_point, width = decode(data, position)
            kind = table[code_point] & _CLASS
            if kind == _SPACE:
                end = position
            elif kind == _ALONE:
                end = position + width
            elif kind == _PART:
                end = _word_end(data, position, stop, table)
                if end < stop and data[end] == _FULL_STOP:
                    key = fnv1a(data, position, end)
                    place = np.searchsorted(abbreviations, key)
                    end += place < len(abbreviations) and abbreviations[place] == key
            else:
                end = position + width
                if follows_word and code_point in _APOSTROPHES:  # 's, 't, 'll
                    end = _word_end(data, end, stop, table)
                elif code_point in _REPEATED:
                    while end < stop and data[end] == code_point:
                        end += 1
            if kind == _SPACE:
                position += width
                follows_word = False
                continue
            hashes[num_words] = fnv1a(data, position, end)
            count = 0
            bits = 0
            while position < end:
                code_point, width = decode(data, position)
                bits |= table[code_point]
                count += 1
                position += width
            characters[num_words] = count
            kinds[num_words] = bits & (HAS_LETTER | HAS_MORE_THAN_MARKS)
            if kind == _ALONE:
                kinds[num_words] |= IS_CHARACTER
            num_words += 1
            follows_word = kind == _PART
        offsets[line + 1] = num_words
    return (
        hashes[:num_words].copy(),
        characters[:num_words].copy(),
        kinds[:num_words].copy(),
        offsets,
    )


@numba.njit(cache=True)
def _word_end(data, position, stop, table):
    """Return the end of a word.

    A word is its parts, the marks that join them, and the full stop of `H.` and `U.S.`.
    """
    before = last = 0  # code points
    while position < stop:
        code_point, width = decode(data, position)
        kind = table[code_point] & _CLASS
        if kind != _PART:
            after = position + width
            follower = table[decode(data, after)[0]] if after < stop else 0
            is_between = follower & _CLASS == _PART
            if last == 0 or kind in (_SPACE, _ALONE) or code_point in _ENDS_WORDS:
                return position
            if kind == _HYPHEN:  # of `UTF-8`, not of `well-known`
                is_between &= follower & HAS_LETTER == 0
                is_between &= code_point != 0x2D or table[last] & HAS_LETTER != 0
            if not is_between:
                is_initial = 65 <= last <= 90 and not 65 <= before <= 90
                return after if code_point == _FULL_STOP and is_initial else position
        before, last = last, code_point
        position += width
    return position


@numba.njit(cache=True, nogil=True)
def _measure_spaced(data, starts, stops, table):
    """Count the words of lines and the characters of the longest; see `spaced_words`."""
    counts = np.zeros(len(starts), np.int64)
    longest = np.zeros(len(starts), np.int64)
    for line in range(len(starts)):
        position = starts[line]
        length = 0
        while position < stops[line]:
            code_point, width = decode(data, position)
            position += width
            kind = table[code_point] & _CLASS
            if kind in (_SPACE, _ALONE):
                length = 0
                counts[line] += kind == _ALONE
                continue
            counts[line] += length == 0
            length += 1
            longest[line] = max(longest[line], length)
    return counts, longest


def new_table(bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Make a set of n-grams for documents.

    Each slot has a key and its owner, the document it was taken for, so that one table serves all
    documents without being cleared.

    Args:
        bounds: int64 [documents + 1], offsets of documents into the words.

    Returns:
        keys: uint64 [slots], a power of two, at least twice the words of the longest document.
        owners: int64 [slots], -1 for none.
    """
    most = int(np.diff(bounds).max(initial=1))
    slots = 1 << (2 * most).bit_length()
    return np.zeros(slots, np.uint64), np.full(slots, -1, np.int64)


@numba.njit(cache=True, inline="always")
def find_gram(key, document, keys, owners):
    """Find the slot of a key among those of a document, or take a free one (linear probing).

    Args:
        key: uint64, of an n-gram.
        document: number.
        keys, owners: of `new_table`.

    Returns:
        The slot, and whether the key is new in the document.
    """
    mask = len(keys) - 1
    slot = np.int64(key & np.uint64(mask))
    while owners[slot] == document and keys[slot] != key:
        slot = (slot + 1) & mask
    is_new = owners[slot] != document
    keys[slot] = key
    owners[slot] = document
    return slot, is_new


@numba.njit(cache=True, inline="always")
def gram_at(hashes, place, size):
    """Return the key of an n-gram, uint64.

    Args:
        hashes: uint64 [words].
        place: its first word.
        size: its words.
    """
    value = np.uint64(0)
    for word in range(place, place + size):
        value = value * GOLDEN_RATIO + hashes[word]
    return mix64(value)
