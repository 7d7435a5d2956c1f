"""How well a vocabulary fits text: WordPiece applied to word counts, without a tokenizer."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pyarrow as pa

from pipeline.corpus.block import offsets_and_data

# Seeds of the hashes of pieces that begin and that continue a word, and FNV-1a's prime.
_BEGINNING = np.uint64(0xCBF29CE484222325)
_CONTINUATION = np.uint64(0x84222325CBF29CE4)
_PRIME = np.uint64(0x100000001B3)


@dataclasses.dataclass(frozen=True)
class Fit:
    """How words are written with a vocabulary.

    Attributes:
        words: words in the text.
        pieces_per_word: pieces a word on average, an [UNK] being one.
        unknown_share: words that become [UNK], as a fraction of 1.
        whole_word_share: words that are one piece other than [UNK], as a fraction of 1.
    """

    words: int
    pieces_per_word: float
    unknown_share: float
    whole_word_share: float


def measure_fit(pieces: list[str], words: pa.Array, counts: np.ndarray) -> Fit | None:
    """Writes every word with the longest pieces first, as BERT does; None if there are no words.

    Args:
        pieces: the vocabulary.
        words: string [words], normalised as the vocabulary's words were.
        counts: int64 [words].
    """
    total = int(counts.sum())
    if total == 0:
        return None
    pieces_of_word = count_pieces(pieces, words)
    is_unknown = pieces_of_word == 0
    return Fit(
        words=total,
        pieces_per_word=float((np.maximum(pieces_of_word, 1) * counts).sum() / total),
        unknown_share=float(counts[is_unknown].sum() / total),
        whole_word_share=float(counts[pieces_of_word == 1].sum() / total),
    )


def count_pieces(pieces: list[str], words: pa.Array) -> np.ndarray:
    """int32 [words]: how many pieces each word is written with, 0 where it becomes [UNK].

    The pieces are found by 64-bit hashes of their text, seeded apart for beginnings and
    continuations.
    """
    beginnings = [p for p in pieces if not p.startswith("##")]
    continuations = [p.removeprefix("##") for p in pieces if p.startswith("##")]
    slots = np.zeros(1 << (4 * len(pieces)).bit_length(), np.uint64)
    longest = 1
    for texts, seed in ((beginnings, _BEGINNING), (continuations, _CONTINUATION)):
        offsets, data = offsets_and_data(pa.array(texts, pa.string()))
        _enter(data, offsets, seed, slots)
        longest = max(longest, int(np.diff(offsets).max(initial=1)))
    offsets, data = offsets_and_data(words)
    found = np.zeros(len(words), np.int32)
    _write(data, offsets, slots, longest, found)
    return found


@numba.njit(cache=True, inline="always")
def _finish(value):
    """Mixes a hash; never 0, which marks a free slot."""
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return value | np.uint64(1)


@numba.njit(cache=True)
def _holds(slots, value):
    slot = np.int64(value >> np.uint64(1)) & (len(slots) - 1)
    while slots[slot] != 0:
        if slots[slot] == value:
            return True
        slot = (slot + 1) & (len(slots) - 1)
    return False


@numba.njit(cache=True)
def _enter(data, offsets, seed, slots):
    for piece in range(len(offsets) - 1):
        value = seed
        for position in range(offsets[piece], offsets[piece + 1]):
            value = (value ^ np.uint64(data[position])) * _PRIME
        value = _finish(value)
        slot = np.int64(value >> np.uint64(1)) & (len(slots) - 1)
        while slots[slot] != 0 and slots[slot] != value:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = value


@numba.njit(cache=True, nogil=True)
def _write(data, offsets, slots, longest, found):
    for word in range(len(found)):
        position, stop = int(offsets[word]), int(offsets[word + 1])
        seed = _BEGINNING
        count = 0
        while position < stop:
            value = seed
            end = position
            for ahead in range(position, min(stop, position + longest)):
                value = (value ^ np.uint64(data[ahead])) * _PRIME
                if _holds(slots, _finish(value)):
                    end = ahead + 1
            if end == position:
                count = 0
                break
            count += 1
            position = end
            seed = _CONTINUATION
        found[word] = count
