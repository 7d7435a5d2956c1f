"""Bias and GELU with their gradient, and draws of dropout, in one pass each.

GELU (Hendrycks and Gimpel 2016): x times the distribution function of the normal distribution,
exact by erf, or approximated by tanh. The forward pass also stores the slope, so that the backward
pass is one multiplication.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.cpu.kernels import FUNCTION, KERNEL
from bert_tf.cpu.kernels.native import DONE, ENTRY, MISFIT, RANK, rows_of, size_of, vector
from bert_tf.cpu.kernels.numbers import (
    error_function,
    exponential,
    hyperbolic_tangent,
    narrow,
    wide,
)

_ZERO = np.float32(0.0)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)
_SQRT_HALF = np.float32(math.sqrt(0.5))
_DENSITY = np.float32(1.0 / math.sqrt(2.0 * math.pi))  # of the normal distribution at 0
# Constants of the tanh approximation, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
_TANH_SCALE = np.float32(math.sqrt(2.0 / math.pi))
_TANH_CUBE = np.float32(0.044715)
_THREE_CUBES = np.float32(3 * 0.044715)


@numba.njit(**KERNEL)
def gelu(inputs: np.ndarray, bias: np.ndarray, outputs: np.ndarray, slopes: np.ndarray) -> None:
    """Compute the exact GELU of inputs plus bias, and its slope there.

    Args:
        inputs: float32, or bfloat16 as uint16, [rows, width].
        bias: like `inputs`, [width].
        outputs, slopes: like `inputs`, written to.
    """
    for row in range(inputs.shape[0]):
        for column in range(inputs.shape[1]):
            value = wide(inputs[row, column]) + wide(bias[column])
            distribution = _HALF + _HALF * error_function(value * _SQRT_HALF)
            density = _DENSITY * exponential(-_HALF * value * value)
            outputs[row, column] = narrow(value * distribution, bias[column])
            slopes[row, column] = narrow(distribution + value * density, bias[column])


@numba.njit(**KERNEL)
def tanh_gelu(
    inputs: np.ndarray, bias: np.ndarray, outputs: np.ndarray, slopes: np.ndarray
) -> None:
    """Compute the tanh approximation of GELU; arguments are those of `gelu`."""
    for row in range(inputs.shape[0]):
        for column in range(inputs.shape[1]):
            value = wide(inputs[row, column]) + wide(bias[column])
            square = value * value
            term = hyperbolic_tangent(_TANH_SCALE * (value + _TANH_CUBE * square * value))
            inner = _TANH_SCALE * (_ONE + _THREE_CUBES * square)
            slope = _HALF * (_ONE + term + value * (_ONE - term * term) * inner)
            outputs[row, column] = narrow(_HALF * value * (_ONE + term), bias[column])
            slopes[row, column] = narrow(slope, bias[column])


@numba.njit(**KERNEL)
def gelu_gradient(
    upstream: np.ndarray, slopes: np.ndarray, inputs_gradient: np.ndarray, bias_gradient: np.ndarray
) -> None:
    """Compute the gradients of inputs and bias.

    Args:
        upstream: gradient of the outputs, float32, or bfloat16 as uint16, [rows, width].
        slopes: like `upstream`, from `gelu` or `tanh_gelu`.
        inputs_gradient: like `upstream`, written to.
        bias_gradient: float32 [width], written to.
    """
    bias_gradient[:] = _ZERO
    for row in range(upstream.shape[0]):
        for column in range(upstream.shape[1]):
            value = wide(upstream[row, column]) * wide(slopes[row, column])
            inputs_gradient[row, column] = narrow(value, slopes[row, column])
            bias_gradient[column] += value


@numba.njit(**FUNCTION)
def _arrays(data: Any, dims: Any, start: int, stop: int, kind: Any) -> Any:
    """Return inputs, bias, outputs and slopes of an entry."""
    inputs = rows_of(data, dims, 0, start, stop, kind)
    outputs = rows_of(data, dims, 2, start, stop, kind)
    return inputs, vector(data, dims, 1, kind), outputs, rows_of(data, dims, 3, start, stop, kind)


@functools.cache
def gelu_entry(kind: Any, is_exact: bool) -> Any:
    """Return the entry of `gelu` or `tanh_gelu`. Inputs: inputs, bias. Outputs: outputs, slopes.

    Args:
        kind: NumPy's type of all of them, uint16 for bfloat16.
        is_exact: whether it is `gelu`.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        if size_of(dims, 1) != dims[RANK - 1]:
            return MISFIT
        if is_exact:
            gelu(*_arrays(data, dims, start, stop, kind))
        else:
            tanh_gelu(*_arrays(data, dims, start, stop, kind))
        return DONE

    return entry


@functools.cache
def gelu_gradient_entry(kind: Any) -> Any:
    """Return the entry of `gelu_gradient`.

    Inputs: upstream, slopes. Outputs: the gradient of the inputs, and of the bias as a sum over
    rows.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        upstream = rows_of(data, dims, 0, start, stop, kind)
        slopes = rows_of(data, dims, 1, start, stop, kind)
        of_inputs = rows_of(data, dims, 2, start, stop, kind)
        gelu_gradient(upstream, slopes, of_inputs, vector(data, dims, 3, np.float32))
        return DONE

    return entry


_PARITY = np.uint32(0x1BD11BDA)  # of Threefry's key schedule
_BLOCK = 1024  # pairs of words that are drawn at a time: 8 KiB, which fit in the L1 cache
DRAWS_OF_PAIR = 8  # each byte of a pair of words is a draw


@numba.njit(nogil=True, cache=True)
def keep_elements(
    key: np.ndarray, counter: np.ndarray, level: int, first: int, outputs: np.ndarray
) -> None:
    """Decide which elements dropout keeps: those whose 8-bit draw is below a level.

    Draws are those of XLA's generator for a key and a counter, one by one: Threefry-2x32 with 20
    rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") for the counter and
    those after it; of each, the first word and then the second. So a draw depends only on its
    number, and pieces of a tensor can be drawn independently.

    Args:
        key: uint32 [2].
        counter: uint32 [2], the lower half first; adding an eighth of the number of draws to it
            must not carry.
        level: 0 to 255.
        first: number of the first draw, a multiple of `DRAWS_OF_PAIR`.
        outputs: bool [size], written to.
    """
    limit = np.uint8(level)
    pairs = np.empty(_BLOCK, np.uint64)
    draws = pairs.view(np.uint8)
    for start in range(0, outputs.size, DRAWS_OF_PAIR * _BLOCK):
        _draw(key, counter, (first + start) // DRAWS_OF_PAIR, pairs)
        part = outputs[start : start + draws.size]
        for place in range(part.size):
            part[place] = draws[place] < limit


@numba.njit(nogil=True, cache=True)
def _draw(key: np.ndarray, counter: np.ndarray, start: int, pairs: np.ndarray) -> None:
    """Draw pairs of 32-bit words, from counter + start on; see `keep_elements`."""
    zeroth = key[0]
    other = key[1]
    last = np.uint32(_PARITY ^ key[0] ^ key[1])
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
    """Compute four rounds of Threefry, rotating by these distances."""
    x, y = _round(x, y, a)
    x, y = _round(x, y, b)
    x, y = _round(x, y, c)
    return _round(x, y, d)


@numba.njit(inline="always")
def _round(x: Any, y: Any, distance: int) -> Any:
    total = np.uint32(x + y)
    left = np.uint32(distance)
    right = np.uint32(32 - distance)
    turned = np.uint32(np.uint32(y << left) | np.uint32(y >> right))
    return total, np.uint32(total ^ turned)


@numba.njit(inline="always")
def _with_key(x: Any, y: Any, key: Any, other: Any, number: int) -> Any:
    """Add a part of the key schedule, after four rounds."""
    return np.uint32(x + key), np.uint32(np.uint32(y + other) + np.uint32(number))


@functools.cache
def keep_elements_entry() -> Any:
    """Return the entry of `keep_elements`.

    Inputs: key and counter as uint64 [1], level as int32 [1]. Output: bool.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        key = vector(data, dims, 0, np.uint64).view(np.uint32)
        counter = vector(data, dims, 1, np.uint64).view(np.uint32)
        level = vector(data, dims, 2, np.int32)[0]
        keep_elements(key, counter, level, start, vector(data, dims, 3, np.bool_)[start:stop])
        return DONE

    return entry
