"""Measures the fit of a vocabulary to text, by WordPiece on word counts, and prunes it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from bert_tf.base.compiled import numba
from bert_tf.base.kernels import FNV_OFFSET_BASIS, fnv1a_step
from pipeline.corpus.document_block import offsets_and_data

# The first value of the hashes of pieces that continue a word; those that begin one have another.
_CONTINUATION = np.uint64(0x84222325CBF29CE4)
# Half of the surplus is removed at a time, since the uses of a removed piece pass to others. A step
# is at least this fraction of the vocabulary: smaller steps hardly change the result.
_SMALLEST_STEP = 1 / 200


@dataclasses.dataclass(frozen=True)
class Fit:
    """The fit of a vocabulary to text.

    Attributes:
        words: number of words of the text.
        pieces_per_word: on average; an [UNK] is one piece.
        unknown_fraction: words that become [UNK], as a fraction of 1.
        whole_word_fraction: words that are one piece other than [UNK], as a fraction of 1.
    """

    words: int
    pieces_per_word: float
    unknown_fraction: float
    whole_word_fraction: float


def measure_fit(pieces: list[str], words: pa.Array, counts: np.ndarray) -> Fit | None:
    """Write every word as BERT does, and measure the pieces; None without words.

    Args:
        pieces: the vocabulary.
        words: string [words], normalized.
        counts: int64 [words].
    """
    total = int(counts.sum())
    if total == 0:
        return None
    pieces_of_word, _ = write_words(pieces, words, counts)
    is_unknown = pieces_of_word == 0
    return Fit(
        words=total,
        pieces_per_word=float((np.maximum(pieces_of_word, 1) * counts).sum() / total),
        unknown_fraction=float(counts[is_unknown].sum() / total),
        whole_word_fraction=float(counts[pieces_of_word == 1].sum() / total),
    )


def write_words(
    pieces: list[str], words: pa.Array, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Write words with the longest pieces first (WordPiece, as google-research/bert does it).

    Args:
        pieces: the vocabulary.
        words: string [words], normalized.
        counts: int64 [words].

    Returns:
        The number of pieces of each word, 0 for [UNK] (int32 [words]), and the number of uses of
        each piece (int64 [pieces]).
    """
    texts = pa.array([piece.removeprefix("##") for piece in pieces], pa.string())
    continues = np.array([piece.startswith("##") for piece in pieces], np.bool_)
    # Four to eight slots for each piece, so that most are in the first slot.
    slots = np.full(1 << (4 * len(pieces)).bit_length(), -1, np.int32)
    piece_offsets, piece_data = offsets_and_data(texts)
    hashes = _enter(piece_data, piece_offsets, continues, slots)
    offsets, data = offsets_and_data(words)
    longest = int(np.diff(piece_offsets).max(initial=1))
    written = np.empty(int(np.diff(offsets).max(initial=1)), np.int32)
    return _write(data, offsets, counts, slots, hashes, longest, written)


@numba.njit(cache=True)
def _find(slots, hashes, value):
    """Return the slot of a piece by its hash, or a free one."""
    mask = len(slots) - 1
    slot = np.int64((value ^ (value >> np.uint64(32))) & np.uint64(mask))
    while slots[slot] >= 0 and hashes[slots[slot]] != value:
        slot = (slot + 1) & mask
    return slot


@numba.njit(cache=True)
def _enter(data, offsets, continues, slots):
    """Enter pieces into the hash table by the hashes of their bytes, which are returned."""
    hashes = np.empty(len(continues), np.uint64)
    for piece in range(len(continues)):
        value = _CONTINUATION if continues[piece] else FNV_OFFSET_BASIS
        for position in range(offsets[piece], offsets[piece + 1]):
            value = fnv1a_step(value, data[position])
        hashes[piece] = value
        slots[_find(slots, hashes, value)] = piece
    return hashes


@numba.njit(cache=True, nogil=True)
def _write(data, offsets, counts, slots, hashes, longest, written):
    """Count pieces of words and uses of pieces.

    The longest piece is found with one hash that is extended byte by byte. Equal hashes of 64 bits
    count as equal pieces.

    Args:
        data: uint8, UTF-8 of the words.
        offsets: int64 [words + 1] into `data`.
        counts: int64 [words], occurrences of each word in the corpus.
        slots: int32, hash table of pieces, -1 where free.
        hashes: uint64 [pieces].
        longest: bytes of the longest piece.
        written: int32, room for the pieces of a word.

    Returns:
        See `write_words`.
    """
    lengths = np.zeros(len(offsets) - 1, np.int32)
    uses = np.zeros(len(hashes), np.int64)
    for word in range(len(lengths)):
        position = int(offsets[word])
        stop = int(offsets[word + 1])
        value_before = FNV_OFFSET_BASIS
        count = 0
        while position < stop:
            value = value_before
            end = position
            for ahead in range(position, min(stop, position + longest)):
                value = fnv1a_step(value, data[ahead])
                piece = slots[_find(slots, hashes, value)]
                if piece >= 0:
                    end = ahead + 1
                    written[count] = piece
            if end == position:
                count = 0
                break
            count += 1
            position = end
            value_before = _CONTINUATION
        lengths[word] = count
        for index in range(count):
            uses[written[index]] += counts[word]
    return lengths, uses


def prune_pieces(
    pieces: list[str], words: pa.Array, counts: np.ndarray, *, size: int, num_fixed: int
) -> list[str]:
    """Remove the least used pieces until `size` are left, in their order.

    Merging leaves pieces that were only needed to build longer ones: about one in twenty of 30,000
    is never used. Learning more pieces and removing the least used fills these entries.

    Args:
        pieces: the vocabulary.
        words: string [words], normalized.
        counts: int64 [words].
        size: pieces to keep.
        num_fixed: number of the first pieces, which stay.
    """
    while len(pieces) > size:
        surplus = len(pieces) - size
        step = max(surplus // 2, min(surplus, int(size * _SMALLEST_STEP) + 1))
        _, uses = write_words(pieces, words, counts)
        # Of equally used pieces, later ones are removed first: a stable sort of the reversed order.
        by_use = np.argsort(uses[num_fixed:][::-1], kind="stable")[:step]
        stays = np.ones(len(pieces), np.bool_)
        stays[len(pieces) - 1 - by_use] = False
        pieces = [pieces[number] for number in np.flatnonzero(stays).tolist()]
    return pieces
