"""Bias and GELU, and their gradient, in one pass each."""

from __future__ import annotations

import functools
import math
from typing import Any

import numba
import numpy as np

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
_DENSITY = np.float32(1.0 / math.sqrt(2.0 * math.pi))
_TANH_SCALE = np.float32(math.sqrt(2.0 / math.pi))
_TANH_CUBE = np.float32(0.044715)
_THREE_CUBES = np.float32(3 * 0.044715)


@numba.njit(**KERNEL)
def gelu(inputs: np.ndarray, bias: np.ndarray, outputs: np.ndarray, slopes: np.ndarray) -> None:
    """The exact GELU of inputs plus bias, and its slope there.

    Args:
        inputs: float32, or bfloat16 as uint16, [rows, width].
        bias: like it, [width].
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
    """The tanh approximation of GELU, arguments as of `gelu`."""
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
    upstream: np.ndarray,
    slopes: np.ndarray,
    inputs_gradient: np.ndarray,
    bias_gradient: np.ndarray,
) -> None:
    """The gradients of inputs and bias.

    Args:
        upstream: of the outputs, float32 or bfloat16 as uint16, [rows, width].
        slopes: like it, of `gelu` or `tanh_gelu`.
        inputs_gradient: like it, written to.
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
    inputs = rows_of(data, dims, 0, start, stop, kind)
    outputs = rows_of(data, dims, 2, start, stop, kind)
    return inputs, vector(data, dims, 1, kind), outputs, rows_of(data, dims, 3, start, stop, kind)


@numba.njit(**FUNCTION)
def _fits(dims: Any) -> bool:
    return size_of(dims, 1) == dims[RANK - 1]


@functools.cache
def gelu_entry(kind: Any) -> Any:
    """Of inputs, bias; outputs, slopes.

    Args:
        kind: NumPy's type of their numbers, uint16 for bfloat16.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        if not _fits(dims):
            return MISFIT
        gelu(*_arrays(data, dims, start, stop, kind))
        return DONE

    return entry


@functools.cache
def tanh_gelu_entry(kind: Any) -> Any:
    """Arguments and results as of `gelu_entry`."""

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        if not _fits(dims):
            return MISFIT
        tanh_gelu(*_arrays(data, dims, start, stop, kind))
        return DONE

    return entry


@functools.cache
def gelu_gradient_entry(kind: Any) -> Any:
    """Of upstream, slopes; the gradient of the inputs, of the bias (a sum)."""

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        upstream = rows_of(data, dims, 0, start, stop, kind)
        slopes = rows_of(data, dims, 1, start, stop, kind)
        of_inputs = rows_of(data, dims, 2, start, stop, kind)
        gelu_gradient(upstream, slopes, of_inputs, vector(data, dims, 3, np.float32))
        return DONE

    return entry
