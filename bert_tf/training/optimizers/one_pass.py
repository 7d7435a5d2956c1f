"""Kernels of the optimizer: AdamW's update, and the norm of a gradient, in a pass over memory each.

A gradient comes in the two parts that it is the sum of, as the parts of a batch computed them.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np

from bert_tf.layers.kernels.native import DONE, ENTRY, vector
from bert_tf.layers.kernels.numbers import narrow, wide
from bert_tf.layers.kernels.options import FUNCTION, KERNEL, SUMMING_KERNEL

# Numbers that stay in a core's first cache from one loop to the next.
_BLOCK = 512
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@numba.njit(**KERNEL)
def adamw_update(
    weights: np.ndarray,
    momentum: np.ndarray,
    velocity: np.ndarray,
    copy: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    numbers: np.ndarray,
) -> None:
    """Updates weights and moments in the order of TensorFlow's kernels.

    Args:
        weights, momentum, velocity: float32 [size], written to.
        copy: bfloat16 as uint16, [size], the weights after the update; [0] for none.
        first, second: parts of the gradient, float32, or bfloat16 as uint16, [size]; [0] for a
            second one that is 0.
        numbers: float32 [6], the factor of the gradient, which at 0 makes 0 of any gradient, the
            learning rate times the decay, beta_1, beta_2, the learning rate with the correction of
            bias, and epsilon.
    """
    factor, decay, beta_1, beta_2, rate, epsilon = (
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        numbers[4],
        numbers[5],
    )
    gradients = np.empty(_BLOCK, np.float32)
    for start in range(0, weights.size, _BLOCK):
        w = weights[start : start + _BLOCK]
        m = momentum[start : start + _BLOCK]
        v = velocity[start : start + _BLOCK]
        _scaled_sum(
            first[start : start + _BLOCK], second[start : start + _BLOCK], factor, gradients
        )
        for place in range(w.size):
            gradient = gradients[place]
            mean = m[place] + (gradient - m[place]) * (_ONE - beta_1)
            square = v[place] + (gradient * gradient - v[place]) * (_ONE - beta_2)
            m[place] = mean
            v[place] = square
            w[place] = w[place] - w[place] * decay - mean * rate / (np.sqrt(square) + epsilon)
        if copy.size > 0:
            rounded = copy[start : start + _BLOCK]
            for place in range(w.size):
                rounded[place] = narrow(w[place], rounded[place])


@numba.njit(**KERNEL)
def squared_norm(first: np.ndarray, second: np.ndarray) -> float:
    """The sum of the squares of a gradient.

    Args:
        first, second: its parts, see `adamw_update`.
    """
    gradients = np.empty(_BLOCK, np.float32)
    total = 0.0
    for start in range(0, first.size, _BLOCK):
        part = first[start : start + _BLOCK]
        _scaled_sum(part, second[start : start + _BLOCK], _ONE, gradients)
        total += _sum_of_squares(gradients[: part.size])
    return total


@numba.njit(**KERNEL)
def _scaled_sum(
    first: np.ndarray, second: np.ndarray, factor: np.float32, gradients: np.ndarray
) -> None:
    """Writes their sum times the factor, 0 where that is 0."""
    if factor == _ZERO:
        gradients[: first.size] = _ZERO
    elif second.size > 0:
        for place in range(first.size):
            gradients[place] = (wide(first[place]) + wide(second[place])) * factor
    else:
        for place in range(first.size):
            gradients[place] = wide(first[place]) * factor


@numba.njit(**SUMMING_KERNEL)
def _sum_of_squares(values: np.ndarray) -> np.float32:
    total = _ZERO
    for place in range(values.size):
        total += values[place] * values[place]
    return total


@numba.njit(**FUNCTION)
def _update(copy: np.ndarray, data: Any, dims: Any, start: int, stop: int, kind: Any) -> int:
    adamw_update(
        vector(data, dims, 3, np.float32)[start:stop],
        vector(data, dims, 4, np.float32)[start:stop],
        vector(data, dims, 5, np.float32)[start:stop],
        copy,
        vector(data, dims, 0, kind)[start:stop],
        vector(data, dims, 1, kind)[start:stop],
        vector(data, dims, 2, np.float32),
    )
    return DONE


@functools.cache
def adamw_entry(kind: Any) -> Any:
    """Of the parts of the gradient, numbers; weights, momentum, velocity.

    Args:
        kind: NumPy's type of the parts, uint16 for bfloat16.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        copy = np.empty(0, np.uint16)
        return _update(copy, data, dims, start, stop, kind)

    return entry


@functools.cache
def copying_adamw_entry(kind: Any) -> Any:
    """As `adamw_entry`, and the copy of the weights in bfloat16."""

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        copy = vector(data, dims, 6, np.uint16)[start:stop]
        return _update(copy, data, dims, start, stop, kind)

    return entry


@functools.cache
def squared_norm_entry(kind: Any) -> Any:
    """Of the parts of a gradient; the sum of its squares, [1] (a sum)."""

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        first = vector(data, dims, 0, kind)[start:stop]
        second = vector(data, dims, 1, kind)[start:stop]
        vector(data, dims, 2, np.float32)[0] = squared_norm(first, second)
        return DONE

    return entry
