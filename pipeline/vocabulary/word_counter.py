"""Counts the distinct words of a corpus, exactly, by blocks of sentences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bert_tf.base.compiled import numba
from bert_tf.base.kernels import fnv1a
from bert_tf.data.text.casing import Lowercase
from pipeline.corpus.document_block import offsets_and_data
from pipeline.corpus.raw_block import gather
from pipeline.vocabulary.word_splitter import WordSplitter

# Words of a new table; a power of two, since slots are found by a mask.
_FIRST_CAPACITY = 1 << 11
_BYTES_PER_WORD = 16  # for the letters of a new table; more are added when they are used up


class _Table(NamedTuple):
    """An open-addressing hash table of words; all but `slots` are in the order of appearance.

    Attributes:
        slots: int32 [2 x capacity], the word of each slot, -1 for a free one. At most half are
            taken, so searches are short.
        hashes: uint64 [capacity].
        bounds: int64 [capacity + 1], where words begin in the letters.
        counts: int64 [capacity].
        letters: uint8, the bytes of the words (UTF-8), end to end.
    """

    slots: np.ndarray
    hashes: np.ndarray
    bounds: np.ndarray
    counts: np.ndarray
    letters: np.ndarray


class WordCounter:
    """Counts distinct words up to `max_word_length` characters; about 100 bytes of memory each."""

    def __init__(self, *, lowercase: Lowercase, max_word_length: int):
        self._splitter = WordSplitter(lowercase=lowercase, max_word_length=max_word_length)
        self._size = 0
        self._table = _Table(
            slots=np.full(2 * _FIRST_CAPACITY, -1, np.int32),
            hashes=np.empty(_FIRST_CAPACITY, np.uint64),
            bounds=np.zeros(_FIRST_CAPACITY + 1, np.int64),
            counts=np.empty(_FIRST_CAPACITY, np.int64),
            letters=np.empty(_BYTES_PER_WORD * _FIRST_CAPACITY, np.uint8),
        )

    def __len__(self) -> int:
        return self._size

    @property
    def too_long(self) -> int:
        """Return the number of words that were longer than `max_word_length`."""
        return self._splitter.too_long

    def count(self, sentences: pa.Array) -> None:
        """Count the words of sentences, string [n]."""
        for letters, bounds in self._splitter.split(sentences):
            self._add(letters, bounds, np.ones(len(bounds) - 1, np.int64))

    def add(self, words: pa.Array, counts: np.ndarray) -> None:
        """Add words that were counted elsewhere, as they are: string [n] and int64 [n]."""
        bounds, letters = offsets_and_data(words)
        self._add(letters, bounds.astype(np.int64), counts)

    def words(self) -> tuple[pa.Array, np.ndarray]:
        """Return the distinct words in the order of their appearance, and their counts (int64)."""
        table = self._table
        size = self._size
        words = gather(table.letters, table.bounds[:size], table.bounds[1 : size + 1])
        return words, table.counts[:size].copy()

    def _add(self, letters: np.ndarray, bounds: np.ndarray, counts: np.ndarray) -> None:
        done = 0
        while done < len(counts):
            done, self._size = _insert(letters, bounds, counts, done, self._table, self._size)
            if done < len(counts):
                self._grow(int(bounds[done + 1] - bounds[done]))

    def _grow(self, next_word: int) -> None:
        """Double the arrays that are full; `next_word` is the size of the word that did not fit."""
        table = self._table
        size = self._size
        if size == len(table.hashes):
            table = table._replace(
                slots=np.full(2 * len(table.slots), -1, np.int32),
                hashes=_grown(table.hashes, 2 * size),
                bounds=_grown(table.bounds, 2 * size + 1),
                counts=_grown(table.counts, 2 * size),
            )
            _fill_slots(table.slots, table.hashes[:size])
        if int(table.bounds[size]) + next_word > len(table.letters):
            letters = _grown(table.letters, 2 * len(table.letters) + next_word)
            table = table._replace(letters=letters)
        self._table = table


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """Return a copy of an array with more elements, which are not set."""
    grown = np.empty(size, array.dtype)
    grown[: len(array)] = array
    return grown


@numba.njit(cache=True, nogil=True)
def _fill_slots(slots, hashes):
    """Enter words into empty slots by their hashes."""
    mask = len(slots) - 1
    for word in range(len(hashes)):
        slot = np.int64(hashes[word] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = word


@numba.njit(cache=True, nogil=True)
def _insert(new_letters, new_bounds, new_counts, new_word, table, size):
    """Count words until the end, or until the table is full.

    Args:
        new_letters: uint8, the words to count, end to end.
        new_bounds: int64 [new words + 1], where they begin.
        new_counts: int64 [new words], occurrences to add.
        new_word: the first word to count.
        table: changed in place.
        size: number of distinct words in the table.

    Returns:
        The first word that is not counted, and the number of distinct words.
    """
    slots, hashes, bounds, counts, letters = table
    mask = len(slots) - 1
    while new_word < len(new_counts):
        begin = new_bounds[new_word]
        end = new_bounds[new_word + 1]
        used = bounds[size]
        if size == len(hashes) or used + end - begin > len(letters):
            break
        value = fnv1a(new_letters, begin, end)
        # The mask takes the low bits, which FNV mixes least.
        value ^= value >> np.uint64(29)
        slot = np.int64(value & np.uint64(mask))
        while slots[slot] >= 0:
            word = slots[slot]
            start = bounds[word]
            if hashes[word] == value and bounds[word + 1] - start == end - begin:
                position = 0
                while position < end - begin:
                    if letters[start + position] != new_letters[begin + position]:
                        break
                    position += 1
                if position == end - begin:
                    break
            slot = (slot + 1) & mask
        if slots[slot] >= 0:
            counts[slots[slot]] += new_counts[new_word]
        else:
            for position in range(end - begin):
                letters[used + position] = new_letters[begin + position]
            slots[slot] = size
            hashes[size] = value
            counts[size] = new_counts[new_word]
            size += 1
            bounds[size] = used + end - begin
        new_word += 1
    return new_word, size
