"""Ranges of flat arrays in NumPy (compiled loops: `kernels`), and seeds of random generators."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Return begins and ends of arrays of these lengths laid end to end: int64 [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def flat_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return start, start + 1, … of every range, concatenated: int64 [sum of lengths]."""
    starts = np.asarray(starts, np.int64)
    lengths = np.asarray(lengths, np.int64)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum(), dtype=np.int64)


def group_means(
    arrays: Mapping[str, np.ndarray], owners: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Average floating point [rows, …] over consecutive rows of one owner, int [rows].

    Returns the first row of each owner, int64 [owners], and means [owners, …] by name.
    """
    if not len(owners):
        return np.zeros(0, np.int64), dict(arrays)
    firsts = np.flatnonzero(np.diff(owners, prepend=owners[0] - 1))
    counts = np.diff(firsts, append=len(owners))
    means = {
        name: np.add.reduceat(values, firsts, axis=0)
        / counts.astype(values.dtype).reshape(-1, *[1] * (values.ndim - 1))
        for name, values in arrays.items()
    }
    return firsts, means


def unsigned_seed(seed: int, bits: int) -> int:
    """Lowest bits of a seed, in two's complement."""
    return seed % 2**bits


def int32_seed(seed: int) -> int:
    """Lowest 32 bits of a seed as a signed number, for TensorFlow's stateless generators."""
    return (seed + 2**31) % 2**32 - 2**31
