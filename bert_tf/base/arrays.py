"""Ranges of flat arrays in NumPy (compiled loops: `kernels`), and seeds of random generators."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Return where arrays of these lengths begin and end if laid end to end: int64 [n + 1].

    Lengths 2, 0, 3 have the offsets 0, 2, 2, 5.

    Args:
        lengths: int or bool [n], none negative.
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def flat_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the numbers start, start + 1, … of every range, one range after the other.

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


def group_means(
    arrays: Mapping[str, np.ndarray], owners: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Average over consecutive rows of the same owner.

    Args:
        arrays: floating point [rows, …] by name.
        owners: int [rows]; the rows of an owner are consecutive.

    Returns:
        The first row of each owner, int64 [owners], and means [owners, …] by name, in the dtypes of
        `arrays`.
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
    """Return the lowest bits of a seed, in two's complement.

    A seed that fits stays the same: 32 bits for `keras.utils.set_random_seed`, 64 for hashes.
    """
    return seed % 2**bits


def int32_seed(seed: int) -> int:
    """Return the lowest 32 bits of a seed as a signed number, for TensorFlow's stateless
    generators.

    A seed from -2 ** 31 to below 2 ** 31 stays the same.
    """
    return (seed + 2**31) % 2**32 - 2**31
