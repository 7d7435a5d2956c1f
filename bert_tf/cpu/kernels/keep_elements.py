"""Which elements dropout keeps, from the Threefry generator, in one pass."""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np

from bert_tf.cpu.kernels.native import DONE, ENTRY, vector

_PARITY = np.uint32(0x1BD11BDA)
# Pairs of words that are drawn at a time, which stay in a processor's first cache.
_BLOCK = 1024
_BYTES = 8  # of a pair


@numba.njit(nogil=True, cache=True)
def keep_elements(
    key: np.ndarray, counter: np.ndarray, level: int, first: int, outputs: np.ndarray
) -> None:
    """Writes which of the 8-bit draws are below a level.

    Draw by draw what XLA's generator gives for a key and a counter: of Threefry-2x32 with 20 rounds
    (Salmon et al. 2011) the first word, then the second, for the counter and the ones after it.

    Args:
        key: uint32 [2].
        counter: uint32 [2], the lower half first, which an eighth of the draws can be added to
            without a carry.
        level: from 0 to 255.
        first: which draw is the first output's, a multiple of 8.
        outputs: bool [size], written to.
    """
    limit = np.uint8(level)
    pairs = np.empty(_BLOCK, np.uint64)
    draws = pairs.view(np.uint8)
    for start in range(0, outputs.size, _BYTES * _BLOCK):
        _draw(key, counter, (first + start) // _BYTES, pairs)
        part = outputs[start : start + draws.size]
        for place in range(part.size):
            part[place] = draws[place] < limit


@numba.njit(nogil=True, cache=True)
def _draw(key: np.ndarray, counter: np.ndarray, start: int, pairs: np.ndarray) -> None:
    zeroth, other, last = key[0], key[1], np.uint32(_PARITY ^ key[0] ^ key[1])
    low = np.uint32(np.uint32(counter[0] + np.uint32(start)) + zeroth)
    high = np.uint32(counter[1] + other)
    for place in range(np.uint32(pairs.size)):
        x, y = np.uint32(low + np.uint32(place)), high
        x, y = _four_rounds(x, y, 13, 15, 26, 6)
        x, y = _with_key(x, y, other, last, 1)
        x, y = _four_rounds(x, y, 17, 29, 16, 24)
        x, y = _with_key(x, y, last, zeroth, 2)
        x, y = _four_rounds(x, y, 13, 15, 26, 6)
        x, y = _with_key(x, y, zeroth, other, 3)
        x, y = _four_rounds(x, y, 17, 29, 16, 24)
        x, y = _with_key(x, y, other, last, 4)
        x, y = _four_rounds(x, y, 13, 15, 26, 6)
        x, y = _with_key(x, y, last, zeroth, 5)
        pairs[place] = np.uint64(x) | np.uint64(np.uint64(y) << np.uint64(32))


@numba.njit(inline="always")
def _four_rounds(x: Any, y: Any, a: int, b: int, c: int, d: int) -> Any:
    x, y = _round(x, y, a)
    x, y = _round(x, y, b)
    x, y = _round(x, y, c)
    return _round(x, y, d)


@numba.njit(inline="always")
def _round(x: Any, y: Any, distance: int) -> Any:
    total = np.uint32(x + y)
    left, right = np.uint32(distance), np.uint32(32 - distance)
    turned = np.uint32(np.uint32(y << left) | np.uint32(y >> right))
    return total, np.uint32(total ^ turned)


@numba.njit(inline="always")
def _with_key(x: Any, y: Any, key: Any, other: Any, number: int) -> Any:
    return np.uint32(x + key), np.uint32(np.uint32(y + other) + np.uint32(number))


@functools.cache
def keep_elements_entry() -> Any:
    """Of key and counter as uint64 [1], level as int32 [1]; outputs."""

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        key = vector(data, dims, 0, np.uint64).view(np.uint32)
        counter = vector(data, dims, 1, np.uint64).view(np.uint32)
        level = vector(data, dims, 2, np.int32)[0]
        keep_elements(key, counter, level, start, vector(data, dims, 3, np.bool_)[start:stop])
        return DONE

    return entry
