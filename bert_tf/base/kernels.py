"""Compiled helpers that kernels of several modules use: ranges, characters, 64-bit hashes.

Orders, splits and random choices of jobs follow from the hashes, so no function here may change
its results. Numba renews a cached kernel only when the file of the kernel itself changes: after an
edit here, delete the `__pycache__` folders.
"""

from __future__ import annotations

import numba
import numpy as np

# Of 64 bits: Fowler, Noll, Vo, Eastlake, "The FNV Non-Cryptographic Hash Algorithm".
FNV_OFFSET_BASIS = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
# 2^64 / golden ratio, odd: the increment of splitmix64, and the factor of Fibonacci hashing (Knuth,
# "The Art of Computer Programming", vol. 3, 6.4).
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


@numba.njit(cache=True, nogil=True)
def take_ranges(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The values of several ranges, one range after the other, without an index per value.

    | values        | starts | lengths | taken   |
    |---------------|--------|---------|---------|
    | 5, 6, 7, 8, 9 | 3, 0   | 2, 1    | 8, 9, 5 |

    Args:
        values: any dtype, one axis.
        starts: int [n].
        lengths: int [n], none negative; ranges are not checked to lie inside `values`.
    """
    taken = np.empty(lengths.sum(), values.dtype)
    at = 0
    for i in range(len(starts)):
        taken[at : at + lengths[i]] = values[starts[i] : starts[i] + lengths[i]]
        at += lengths[i]
    return taken


@numba.njit(cache=True, nogil=True)
def count_characters(data: np.ndarray, start: int, stop: int) -> int:
    """Characters of UTF-8: bytes that are not inside one; of other bytes, each but 0x80 to 0xBF.

    Args:
        data: uint8.
        start, stop: the range.
    """
    count = 0
    for place in range(start, stop):
        count += data[place] & 0xC0 != 0x80
    return count


@numba.njit(cache=True, inline="always")
def fnv1a_step(value: np.uint64, unit: int) -> np.uint64:
    """The FNV-1a hash (64 bits) of what `value` is the hash of, and one unit more."""
    return (value ^ np.uint64(unit)) * FNV_PRIME


@numba.njit(cache=True, inline="always")
def fnv1a(units: np.ndarray, start: int, stop: int) -> np.uint64:
    """The FNV-1a hash (64 bits) of `units[start:stop]`.

    Args:
        units: uint8 for the published function; of wider ones each is taken in as a whole.
        start, stop: the range.
    """
    value = FNV_OFFSET_BASIS
    for place in range(start, stop):
        value = fnv1a_step(value, units[place])
    return value


@numba.njit(cache=True, nogil=True)
def mix64(value: np.uint64) -> np.uint64:
    """Spreads the bits of a 64-bit number over all of them, one to one: splitmix64's finalizer
    (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators")."""
    value = (value ^ (value >> np.uint64(30))) * _FIRST_FACTOR
    value = (value ^ (value >> np.uint64(27))) * _SECOND_FACTOR
    return value ^ (value >> np.uint64(31))
