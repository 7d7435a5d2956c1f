"""Bias, dropout, residual sum and LayerNorm, and their gradient, in one call each.

Nothing but the inputs is kept for the gradient, which normalizes each row again: that is faster
than writing and reading normalized rows. With y = (x - mean) / deviation, and g the upstream
gradient times gamma, the gradient of x is (g - mean(g) - y mean(g y)) / deviation (Ba et al. 2016,
"Layer Normalization").
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.cpu.kernels import KERNEL, SUMMING_KERNEL
from bert_tf.cpu.kernels.native import DONE, ENTRY, MISFIT, rows_of, size_of, vector
from bert_tf.cpu.kernels.numbers import narrow, wide

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@numba.njit(**SUMMING_KERNEL)
def sum_norm(
    hidden: np.ndarray,
    change: np.ndarray,
    bias: np.ndarray,
    keep: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    keep_scale: np.float32,
    epsilon: np.float32,
    outputs: np.ndarray,
) -> None:
    """Normalize `hidden` plus dropout of (`change` plus `bias`).

    Args:
        hidden, change: float32, or bfloat16 as uint16, [rows, width].
        bias: like them, [width].
        keep: bool [rows, width], elements that dropout keeps; [0, 0] for all of them.
        gamma, beta: float32 [width].
        keep_scale: factor of elements that dropout keeps.
        epsilon: added to the variance.
        outputs: like `hidden`, written to.
    """
    rows, width = hidden.shape
    normalized = np.empty(width, np.float32)
    shift = _widened(bias)
    for row in range(rows):
        _normalize_row(row, hidden, change, shift, keep, keep_scale, epsilon, normalized)
        for column in range(width):
            value = normalized[column] * gamma[column] + beta[column]
            outputs[row, column] = narrow(value, hidden[row, column])


@numba.njit(**SUMMING_KERNEL)
def sum_norm_gradient(
    upstream: np.ndarray,
    hidden: np.ndarray,
    change: np.ndarray,
    bias: np.ndarray,
    keep: np.ndarray,
    gamma: np.ndarray,
    keep_scale: np.float32,
    epsilon: np.float32,
    hidden_gradient: np.ndarray,
    change_gradient: np.ndarray,
    bias_gradient: np.ndarray,
    gamma_gradient: np.ndarray,
    beta_gradient: np.ndarray,
) -> None:
    """Compute the gradients of `sum_norm`, which normalizes rows again.

    Args:
        upstream: gradient of the outputs, like `hidden`.
        hidden, change, bias, keep, gamma, keep_scale, epsilon: see `sum_norm`.
        hidden_gradient, change_gradient: like `hidden`, written to.
        bias_gradient, gamma_gradient, beta_gradient: float32 [width], written to.
    """
    rows, width = hidden.shape
    drops = keep.size > 0
    bias_gradient[:] = _ZERO
    gamma_gradient[:] = _ZERO
    beta_gradient[:] = _ZERO
    normalized = np.empty(width, np.float32)
    given = np.empty(width, np.float32)
    shift = _widened(bias)
    part = _ONE / np.float32(width)
    for row in range(rows):
        inverse = _normalize_row(row, hidden, change, shift, keep, keep_scale, epsilon, normalized)
        # Several short loops over few arrays, because LLVM vectorizes no loop over many arrays that
        # may overlap.
        for column in range(width):
            given[column] = wide(upstream[row, column])
            beta_gradient[column] += given[column]
        for column in range(width):
            gamma_gradient[column] += given[column] * normalized[column]
        weights = _ZERO
        slopes = _ZERO
        for column in range(width):
            given[column] *= gamma[column]
            weights += given[column]
            slopes += given[column] * normalized[column]
        weights *= part
        slopes *= part
        for column in range(width):
            value = (given[column] - weights - normalized[column] * slopes) * inverse
            given[column] = value
            hidden_gradient[row, column] = narrow(value, hidden[row, column])
        if drops:
            for column in range(width):
                given[column] *= keep_scale if keep[row, column] else _ZERO
        for column in range(width):
            change_gradient[row, column] = narrow(given[column], hidden[row, column])
            bias_gradient[column] += given[column]


@numba.njit(**SUMMING_KERNEL)
def _normalize_row(
    row: int,
    hidden: np.ndarray,
    change: np.ndarray,
    shift: np.ndarray,
    keep: np.ndarray,
    keep_scale: np.float32,
    epsilon: np.float32,
    normalized: np.ndarray,
) -> np.float32:
    """Write the sums of a row with mean 0 and variance 1 to `normalized`.

    Args:
        row: the row.
        hidden, change, keep, keep_scale, epsilon: see `sum_norm`.
        shift: float32 [width], the bias.
        normalized: float32 [width], written to.

    Returns:
        The inverse of their standard deviation.
    """
    width = hidden.shape[1]
    part = _ONE / np.float32(width)
    total = _ZERO
    if keep.size > 0:
        for column in range(width):
            factor = keep_scale if keep[row, column] else _ZERO
            moved = wide(change[row, column]) + shift[column]
            value = wide(hidden[row, column]) + moved * factor
            normalized[column] = value
            total += value
    else:
        for column in range(width):
            value = wide(hidden[row, column]) + (wide(change[row, column]) + shift[column])
            normalized[column] = value
            total += value
    mean = total * part
    squares = _ZERO
    for column in range(width):
        normalized[column] -= mean
        squares += normalized[column] * normalized[column]
    inverse = _ONE / np.sqrt(squares * part + epsilon)
    for column in range(width):
        normalized[column] *= inverse
    return inverse


@numba.njit(**KERNEL)
def _widened(numbers: np.ndarray) -> np.ndarray:
    """Return numbers of an array as float32."""
    values = np.empty(numbers.size, np.float32)
    for index in range(numbers.size):
        values[index] = wide(numbers[index])
    return values


@functools.cache
def sum_norm_entry(kind: Any) -> Any:
    """Return the entry of `sum_norm`.

    Inputs: hidden, change, bias, keep, gamma, beta, and keep_scale with epsilon. Output: outputs.

    Args:
        kind: NumPy's type of hidden, change, bias and outputs, uint16 for bfloat16.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        hidden = rows_of(data, dims, 0, start, stop, kind)
        change = rows_of(data, dims, 1, start, stop, kind)
        bias = vector(data, dims, 2, kind)
        keep = rows_of(data, dims, 3, start, stop, np.bool_)
        gamma = vector(data, dims, 4, np.float32)
        beta = vector(data, dims, 5, np.float32)
        numbers = vector(data, dims, 6, np.float32)
        size = size_of(dims, 0)
        width = hidden.shape[1]
        if size_of(dims, 1) != size or (size_of(dims, 3) != size and size_of(dims, 3) > 0):
            return MISFIT
        if bias.size != width or gamma.size != width or beta.size != width:
            return MISFIT
        outputs = rows_of(data, dims, 7, start, stop, kind)
        sum_norm(hidden, change, bias, keep, gamma, beta, numbers[0], numbers[1], outputs)
        return DONE

    return entry


@functools.cache
def sum_norm_gradient_entry(kind: Any) -> Any:
    """Return the entry of `sum_norm_gradient`.

    Inputs: upstream, hidden, change, bias, keep, gamma, and keep_scale with epsilon. Outputs: the
    gradients of hidden and change, and as sums over rows those of bias, gamma and beta.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        numbers = vector(data, dims, 6, np.float32)
        sum_norm_gradient(
            rows_of(data, dims, 0, start, stop, kind),
            rows_of(data, dims, 1, start, stop, kind),
            rows_of(data, dims, 2, start, stop, kind),
            vector(data, dims, 3, kind),
            rows_of(data, dims, 4, start, stop, np.bool_),
            vector(data, dims, 5, np.float32),
            numbers[0],
            numbers[1],
            rows_of(data, dims, 7, start, stop, kind),
            rows_of(data, dims, 8, start, stop, kind),
            vector(data, dims, 9, np.float32),
            vector(data, dims, 10, np.float32),
            vector(data, dims, 11, np.float32),
        )
        return DONE

    return entry
