"""Words for finding copies: without case, spacing, punctuation and invisible characters.

Characters of scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are words.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pyarrow as pa

from bert_tf.base.compiled import numba
from bert_tf.base.kernels import FNV_OFFSET_BASIS, GOLDEN_RATIO, combine, mix64
from pipeline.corpus.characters import WITHOUT_SPACES, code_point_table, decode
from pipeline.corpus.document_block import (
    DocumentBlock,
    document_hashes,
    hash_ranges,
    offsets_and_data,
)

# Entries of the table besides folded code points; no letter has these values.
_BETWEEN = 0  # between words
_SKIPPED = 1  # neither in a word nor between words
_ALONE = 1 << 31  # a bit of characters that are a word by themselves
_VARIATIONS = frozenset(map(chr, range(0xFE00, 0xFE10)))  # they select the look of an emoji
# Numbers of notes, `[3]` and `[a]`, and character references, `&nbsp;`, are no words.
_NOTE_BEGIN = ord("[")
_NOTE_END = ord("]")
_LONGEST_NOTE = 4
_REFERENCE_BEGIN = ord("&")
_REFERENCE_END = ord(";")
_LONGEST_REFERENCE = 9


@functools.cache
def _folding_table(with_symbols: bool) -> np.ndarray:
    """Return folded code points (_ALONE: a bit), _BETWEEN or _SKIPPED, uint32 [NUM_CODE_POINTS]."""

    def folded(character: str, category: str) -> int:
        if category == "Cf" or (character in _VARIATIONS and not with_symbols):
            return _SKIPPED
        kinds = "LMNS" if with_symbols else "LMN"
        return ord(character.lower()[0]) if category[0] in kinds else _BETWEEN

    table = code_point_table(folded, _BETWEEN, np.uint32)
    for first, last in WITHOUT_SPACES:
        is_word = table[first : last + 1] > _SKIPPED
        table[first : last + 1][is_word] |= np.uint32(_ALONE)
    return table


@dataclasses.dataclass(frozen=True)
class FoldedBlock:
    """Documents and lines of a block as hashes of their words.

    Attributes:
        words: uint64 [words], a hash of each.
        document_offsets: int64 [documents + 1] into the words.
        line_keys: uint64 [lines], equal for lines of equal words; lines without any word are equal
            only if their bytes are.
        document_keys: uint64 [documents], the same for documents.
    """

    words: np.ndarray
    document_offsets: np.ndarray
    line_keys: np.ndarray
    document_keys: np.ndarray


@dataclasses.dataclass(frozen=True)
class FoldedTexts:
    """Texts as hashes of their words.

    Attributes:
        words: uint64 [words], a hash of each.
        starts: int32 [words], the byte of the texts' data where each begins.
        offsets: int64 [texts + 1] into the words.
    """

    words: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray


def fold_texts(texts: pa.Array, *, with_symbols: bool = True) -> FoldedTexts:
    """Fold texts to hashes of their words.

    Args:
        texts: string [texts].
        with_symbols: whether signs such as `$`, `=` and emoji are parts of words. Otherwise they
            are between words, and so are numbers of notes (`[3]`, `[a]`) and references (`&nbsp;`).
    """
    offsets, data = offsets_and_data(texts)
    # A word and its separator have two bytes at least; the last word of a text has no separator.
    capacity = int(offsets[-1] - offsets[0]) // 2 + len(texts)
    words = np.empty(capacity, np.uint64)
    starts = np.empty(capacity, np.int32)
    text_words = np.zeros(len(texts) + 1, np.int64)
    table = _folding_table(with_symbols)
    num_words = _fold(data, offsets, table, not with_symbols, words, starts, text_words)
    return FoldedTexts(words[:num_words].copy(), starts[:num_words].copy(), text_words)


def fold_block(block: DocumentBlock) -> FoldedBlock:
    """Fold a block, and make keys of its lines and documents."""
    offsets, data = offsets_and_data(block.sentences)
    folded = fold_texts(block.sentences)
    line_offsets = folded.offsets[block.line_offsets]
    document_offsets = folded.offsets[block.document_offsets]
    line_keys = _keys(folded.words, line_offsets)
    wordless = np.flatnonzero(np.diff(line_offsets) == 0)
    bounds = offsets[block.line_offsets]
    line_keys[wordless] = hash_ranges(data, bounds[wordless], bounds[wordless + 1])
    document_keys = _keys(folded.words, document_offsets)
    wordless = np.flatnonzero(np.diff(document_offsets) == 0)
    if len(wordless):
        document_keys[wordless] = document_hashes(block)[wordless]
    return FoldedBlock(folded.words, document_offsets, line_keys, document_keys)


@numba.njit(cache=True)
def _width_of_note(data, position, stop):
    """Return the bytes of a note's number or letter, `[3]`, or a character reference; else 1."""
    is_note = data[position] == _NOTE_BEGIN
    if is_note and position + 2 < stop and data[position + 2] == _NOTE_END:
        is_letter = 97 <= data[position + 1] | 32 <= 122
        if is_letter:
            return 3
    end = _NOTE_END if is_note else _REFERENCE_END
    longest = _LONGEST_NOTE if is_note else _LONGEST_REFERENCE
    for place in range(position + 1, min(position + longest + 1, stop)):
        byte = data[place]
        if byte == end and place > position + 1:
            return place + 1 - position
        is_digit = 48 <= byte <= 57
        is_letter = 97 <= byte | 32 <= 122 or byte == 35  # also # of &#160;
        if not (is_digit or (is_letter and not is_note)):
            break
    return 1


@numba.njit(cache=True, nogil=True)
def _fold(data, offsets, table, skips_notes, words, starts, text_words):
    """Find and hash the words of texts.

    Args:
        data: uint8, UTF-8 of the texts.
        offsets: int64 [texts + 1] into `data`.
        table: result of `_folding_table`.
        skips_notes: whether numbers of notes and character references are no words.
        words: uint64, set to the hashes of words.
        starts: int32, set to the bytes where words begin.
        text_words: int64 [texts + 1], set to the number of words up to the end of each text.

    Returns:
        The number of words.
    """
    num_words = 0
    for text in range(len(text_words) - 1):
        position = offsets[text]
        stop = offsets[text + 1]
        value = FNV_OFFSET_BASIS
        in_word = False
        while position < stop:
            code_point, width = decode(data, position)
            if skips_notes and code_point in (_NOTE_BEGIN, _REFERENCE_BEGIN):
                width = _width_of_note(data, position, stop)
            position += width
            folded = np.int64(table[code_point])
            if folded == _SKIPPED:
                continue
            if in_word and (folded == _BETWEEN or folded >= _ALONE):
                words[num_words] = mix64(value)
                num_words += 1
                value = FNV_OFFSET_BASIS
                in_word = False
            if folded == _BETWEEN:
                continue
            if not in_word:
                starts[num_words] = position - width
            value = (value ^ np.uint64(folded)) * GOLDEN_RATIO
            value ^= value >> np.uint64(32)
            if folded >= _ALONE:
                words[num_words] = mix64(value)
                num_words += 1
                value = FNV_OFFSET_BASIS
            else:
                in_word = True
        if in_word:
            words[num_words] = mix64(value)
            num_words += 1
        text_words[text + 1] = num_words
    return num_words


@numba.njit(cache=True, nogil=True)
def _keys(words, offsets):
    """Return hashes of stretches of words, uint64 [stretches]."""
    keys = np.empty(len(offsets) - 1, np.uint64)
    for stretch in range(len(keys)):
        value = FNV_OFFSET_BASIS
        for word in range(offsets[stretch], offsets[stretch + 1]):
            value = combine(value, words[word])
        keys[stretch] = value
    return keys
