"""Random numbers that are a pure function of a key: the same for any order, split or machine.

Keys are 64-bit numbers made from a seed and names (`combine_keys`); a stream of numbers follows
from a key by splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
generators"). All functions but `seed_key` and `combine_keys` are for numba code.
"""

from __future__ import annotations

import numba
import numpy as np

from bert_tf.base.arrays import unsigned_seed
from bert_tf.base.kernels import GOLDEN_RATIO, mix64

_UNIT = 1.0 / (1 << 53)


def seed_key(seed: int, purpose: str) -> np.uint64:
    """The key of one purpose ("segments", "masks", …) under a user's seed, any whole number."""
    name = int.from_bytes(purpose.encode("ascii"), "little")
    parts = np.array([(name >> shift) % 2**64 for shift in range(0, name.bit_length() + 1, 64)])
    key = np.array([unsigned_seed(seed, 64)], np.uint64)
    for part in parts.astype(np.uint64):
        key = combine_keys(key, part)
    return key[0]


def combine_keys(keys: np.ndarray, values: np.ndarray | np.uint64) -> np.ndarray:
    """New keys uint64 [n] from keys uint64 [n] and a number for all or one for each.

    The order of combinations matters: (key, 1, 2) is not (key, 2, 1).
    """
    numbers = np.broadcast_to(np.asarray(values, np.uint64), keys.shape)
    return _combine_keys(np.ascontiguousarray(keys), np.ascontiguousarray(numbers))


@numba.njit(cache=True, nogil=True)
def combine(key: np.uint64, value: np.uint64) -> np.uint64:
    """A new key from a key and a number."""
    return mix64(mix64(key + GOLDEN_RATIO) ^ (np.uint64(value) * GOLDEN_RATIO + np.uint64(1)))


@numba.njit(cache=True, nogil=True)
def next_bits(state: np.ndarray) -> np.uint64:
    """The next 64 bits of the stream whose state, uint64 [1], began as a key."""
    state[0] += GOLDEN_RATIO
    return mix64(state[0])


@numba.njit(cache=True, nogil=True)
def next_unit(state: np.ndarray) -> float:
    """The next number of the stream in [0, 1)."""
    return np.float64(next_bits(state) >> np.uint64(11)) * _UNIT


@numba.njit(cache=True, nogil=True)
def next_below(state: np.ndarray, bound: int) -> np.int64:
    """The next whole number of the stream in [0, bound)."""
    return np.int64(next_unit(state) * bound)


@numba.njit(cache=True, nogil=True)
def _combine_keys(keys, values):
    combined = np.empty_like(keys)
    for i in range(len(keys)):
        combined[i] = combine(keys[i], values[i])
    return combined
