"""Conversions of a user's seed, any whole number, to the ranges that generators take."""

from __future__ import annotations


def unsigned_seed(seed: int, bits: int) -> int:
    """The lowest bits of a seed, in two's complement, from 0 to below 2 ** bits.

    32 bits for `keras.utils.set_random_seed` and NumPy's legacy generator, 64 for hashes. A seed
    that fits stays what it is.
    """
    return seed % 2**bits


def int32_seed(seed: int) -> int:
    """The lowest 32 bits of a seed as a signed number, for TensorFlow's stateless generators.

    A seed from -2 ** 31 to below 2 ** 31 stays what it is.
    """
    return (seed + 2**31) % 2**32 - 2**31
