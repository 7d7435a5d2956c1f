"""Compiled helpers: ranges, characters, 64-bit hashes, random numbers by key.

Orders, splits and random choices of jobs follow from these functions, so none may change its
results.

Random numbers: a key is a hash of the user's seed, a purpose, and numbers that identify the thing
to choose for, such as a document (`seed_key`, `combine_keys`). A stream of numbers starts from a
key (`next_bits`). So choices do not depend on the order of computation or on the number of workers.
"""

from __future__ import annotations

import numpy as np

from bert_tf.base.arrays import unsigned_seed
from bert_tf.base.compiled import numba

# FNV-1a with 64 bits (Fowler, Noll, Vo, Eastlake, "The FNV Non-Cryptographic Hash Algorithm").
FNV_OFFSET_BASIS = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
# 2^64 / golden ratio, odd: the increment of splitmix64, and the factor of Fibonacci hashing (Knuth,
# "The Art of Computer Programming", vol. 3, 6.4).
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
# Factors of splitmix64's finalizer.
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


@numba.njit(cache=True, nogil=True)
def take_ranges(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Copy ranges of `values`, one after the other.

    Values 5, 6, 7, 8, 9 with starts 3, 0 and lengths 2, 1 give 8, 9, 5.

    Args:
        values: any dtype, one axis.
        starts: int [n].
        lengths: int [n], none negative; bounds are not checked.
    """
    taken = np.empty(lengths.sum(), values.dtype)
    at = 0
    for i in range(len(starts)):
        taken[at : at + lengths[i]] = values[starts[i] : starts[i] + lengths[i]]
        at += lengths[i]
    return taken


@numba.njit(cache=True, nogil=True)
def count_characters(data: np.ndarray, start: int, stop: int) -> int:
    """Count the characters of `data[start:stop]`, UTF-8 in uint8: all but continuation bytes."""
    count = 0
    for place in range(start, stop):
        count += data[place] & 0xC0 != 0x80
    return count


@numba.njit(cache=True, inline="always")
def fnv1a_step(value: np.uint64, unit: int) -> np.uint64:
    """Add a unit to an FNV-1a hash."""
    return (value ^ np.uint64(unit)) * FNV_PRIME


@numba.njit(cache=True, inline="always")
def fnv1a(units: np.ndarray, start: int, stop: int) -> np.uint64:
    """Return the FNV-1a hash (64 bits) of `units[start:stop]`.

    Units may be wider than uint8, unlike in the published function; each is added as a whole.
    """
    value = FNV_OFFSET_BASIS
    for place in range(start, stop):
        value = fnv1a_step(value, units[place])
    return value


@numba.njit(cache=True, nogil=True)
def mix64(value: np.uint64) -> np.uint64:
    """Spread the bits of a 64-bit number over all of them, one to one.

    This is the finalizer of splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom
    number generators").
    """
    value = (value ^ (value >> np.uint64(30))) * _FIRST_FACTOR
    value = (value ^ (value >> np.uint64(27))) * _SECOND_FACTOR
    return value ^ (value >> np.uint64(31))


_UNIT = 1.0 / (1 << 53)  # distance of the numbers of `next_unit`


def seed_key(seed: int, purpose: str) -> np.uint64:
    """Return the key of one purpose ("segments", "masks", …) under a user's seed, any integer."""
    name = int.from_bytes(purpose.encode("ascii"), "little")
    parts = np.array([(name >> shift) % 2**64 for shift in range(0, name.bit_length() + 1, 64)])
    key = np.array([unsigned_seed(seed, 64)], np.uint64)
    for part in parts.astype(np.uint64):
        key = combine_keys(key, part)
    return key[0]


def combine_keys(keys: np.ndarray, values: np.ndarray | np.uint64) -> np.ndarray:
    """Return new keys from keys and numbers; the order of combinations matters.

    Args:
        keys: uint64 [n].
        values: uint64 [n], or one number for all.

    Returns:
        uint64 [n].
    """
    numbers = np.broadcast_to(np.asarray(values, np.uint64), keys.shape)
    return _combine_keys(np.ascontiguousarray(keys), np.ascontiguousarray(numbers))


@numba.njit(cache=True, nogil=True)
def combine(key: np.uint64, value: np.uint64) -> np.uint64:
    """Return a new key from a key and a number."""
    return mix64(mix64(key + GOLDEN_RATIO) ^ (np.uint64(value) * GOLDEN_RATIO + np.uint64(1)))


@numba.njit(cache=True, nogil=True)
def next_bits(state: np.ndarray) -> np.uint64:
    """Return the next 64 bits of the stream whose state, uint64 [1], started as a key."""
    state[0] += GOLDEN_RATIO
    return mix64(state[0])


@numba.njit(cache=True, nogil=True)
def next_unit(state: np.ndarray) -> float:
    """Return the next number of the stream, in [0, 1)."""
    return np.float64(next_bits(state) >> np.uint64(11)) * _UNIT


@numba.njit(cache=True, nogil=True)
def next_below(state: np.ndarray, bound: int) -> np.int64:
    """Return the next integer of the stream, in [0, bound)."""
    return np.int64(next_unit(state) * bound)


@numba.njit(cache=True, nogil=True)
def _combine_keys(keys, values):
    combined = np.empty_like(keys)
    for i in range(len(keys)):
        combined[i] = combine(keys[i], values[i])
    return combined
