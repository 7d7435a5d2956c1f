"""Ranges of flat arrays, in NumPy alone: what needs compiled loops is in `kernels`."""

from __future__ import annotations

import numpy as np


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Where things of these lengths begin and end when laid end to end: int64 [n + 1].

    | lengths | offsets      |
    |---------|--------------|
    | 2, 0, 3 | 0, 2, 2, 5   |

    Args:
        lengths: whole numbers or bool [n], none negative.
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def flat_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers start, start + 1, … of every range, one range after the other.

    `flat_ranges([5, 0], [2, 3])` is `[5, 6, 0, 1, 2]`.

    Args:
        starts: int [n].
        lengths: int [n], none negative.

    Returns:
        int64 [sum of lengths].
    """
    starts = np.asarray(starts, np.int64)
    lengths = np.asarray(lengths, np.int64)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum(), dtype=np.int64)
