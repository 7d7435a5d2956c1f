"""Removes the pieces that the corpus uses least when it is tokenized.

Merging leaves pieces that only served to build longer ones, which then take their place:
about one in twenty of 30,000 is never used. Learning more pieces than requested and removing
the least used fills these entries with pieces that are used.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipeline.vocabulary.quality import write_words

# A piece's uses go to others when it is removed, so half of the surplus is removed at a time, and
# no fewer than this fraction of the vocabulary, since the rest hardly matters.
_SMALLEST_STEP = 1 / 200


def prune_pieces(
    pieces: list[str], words: pa.Array, counts: np.ndarray, *, size: int, num_fixed: int
) -> list[str]:
    """Leaves `size` pieces in their order.

    Args:
        pieces: the vocabulary.
        words: string [words], distinct.
        counts: int64 [words].
        size: pieces to leave.
        num_fixed: pieces at the beginning that stay whatever their use.
    """
    while len(pieces) > size:
        surplus = len(pieces) - size
        step = max(surplus // 2, min(surplus, int(size * _SMALLEST_STEP) + 1))
        _, uses = write_words(pieces, words, counts)
        # Of equally used ones the later goes: a stable sort of the reversed order.
        by_use = np.argsort(uses[num_fixed:][::-1], kind="stable")[:step]
        leaves = np.zeros(len(pieces), np.bool_)
        leaves[len(pieces) - 1 - by_use] = True
        pieces = [piece for piece, goes in zip(pieces, leaves.tolist(), strict=True) if not goes]
    return pieces
