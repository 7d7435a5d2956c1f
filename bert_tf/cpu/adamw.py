"""AdamW's update, and the norm of a gradient, in one pass over memory each; a gradient is two parts
to be added, as the parts of a batch computed them, or the rows of a table that are not 0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numba
import numpy as np
import tensorflow as tf

from bert_tf.cpu.kernels import KERNEL, SUMMING_KERNEL
from bert_tf.cpu.kernels.native import DONE, ENTRY, MISFIT, rows_of, vector
from bert_tf.cpu.kernels.numbers import narrow, wide
from bert_tf.cpu.kernels.operation import in_place, kind_of

# Of one variable. Two tensors, in bfloat16 or float32, are the parts of a float32 sum; slices are
# the only rows that are not 0, float32, each of them once.
Gradient: TypeAlias = "tf.Tensor | tuple[tf.Tensor, tf.Tensor] | tf.IndexedSlices"
# Numbers that are worth a kernel's call.
_LARGE = 2**17
# Numbers that stay in a core's first cache from one loop to the next.
_BLOCK = 512
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


def is_large(values: Any) -> bool:
    return (values.shape.num_elements() or 0) >= _LARGE


class InPlaceAdamW:
    """AdamW's updates of large variables on processors, in one pass over memory.

    Of a table whose gradient is given as rows, an update leaves out the moments of rows that never
    had a gradient, which are 0. For one replica, inside of a TensorFlow function, with
    `take_memory` called since anything else has read or assigned the variables. Values that the
    function has read of them before must be used by then, as they are by all that the gradients
    depend on: TensorFlow does not wait for others. `copies`, in another dtype, are by number.
    """

    def __init__(
        self,
        variables: Sequence[Any],
        momentums: Sequence[Any],
        velocities: Sequence[Any],
        copies: dict[int, tf.Variable],
    ):
        self._values = {
            index: (weights.value, momentums[index].value, velocities[index].value)
            for index, weights in enumerate(variables)
            if _is_supported(weights.value, copies.get(index))
        }
        self._copies = copies
        # By the number of a table, bool [rows]. Not saved: `take_memory` finds them.
        self._has_moments = {
            index: tf.Variable(tf.zeros(weights.shape[0], tf.bool), trainable=False)
            for index, (weights, *_) in self._values.items()
            if len(weights.shape) == 2 and index not in copies
        }

    def __contains__(self, index: int) -> bool:
        return index in self._values

    def takes_rows(self, index: int) -> bool:
        return index in self._has_moments

    def take_memory(self) -> None:
        """Gives variables memory that no tensor, assigned or read before, shares."""
        for values in self._values.values():
            for owner in values:
                owner.assign(tf.raw_ops.DeepCopy(x=owner.read_value()))
        for index, has_moments in self._has_moments.items():
            in_place(find_moments_entry(), self._values[index][1:], [has_moments], row_axes=1)

    def update(self, index: int, gradient: Gradient, numbers: tf.Tensor) -> None:
        if isinstance(gradient, tf.IndexedSlices):
            self._update_table(index, gradient, numbers)
            return
        copies = [self._copies[index]] if index in self._copies else []
        first, second = gradient if isinstance(gradient, tuple) else (gradient, tf.zeros([0]))
        entry = adamw_entry(kind_of(first), bool(copies))
        in_place(entry, [first, second, numbers], [*self._values[index], *copies], row_axes=0)

    def _update_table(self, index: int, gradient: tf.IndexedSlices, numbers: tf.Tensor) -> None:
        variables = [*self._values[index], self._has_moments[index]]
        places = tf.tensor_scatter_nd_update(
            tf.fill([variables[0].shape[0]], -1),
            gradient.indices[:, None],
            tf.range(tf.size(gradient.indices)),
        )
        arguments = [places, gradient.values, numbers]
        in_place(adamw_table_entry(), arguments, variables, row_axes=1, divided=len(arguments))


def _is_supported(weights: tf.Variable, copy: tf.Variable | None) -> bool:
    return (
        is_large(weights)
        and "CPU" in weights.device
        and weights.dtype.name == "float32"
        and (copy is None or copy.dtype.name == "bfloat16")
    )


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
            bias, and epsilon as added to the root of a velocity without it.
    """
    gradients = np.empty(_BLOCK, np.float32)
    for start in range(0, weights.size, _BLOCK):
        w = weights[start : start + _BLOCK]
        m = momentum[start : start + _BLOCK]
        v = velocity[start : start + _BLOCK]
        _scaled_sum(
            first[start : start + _BLOCK], second[start : start + _BLOCK], numbers[0], gradients
        )
        _update_block(w, m, v, gradients, numbers)
        if copy.size > 0:
            rounded = copy[start : start + _BLOCK]
            for place in range(w.size):
                rounded[place] = narrow(w[place], rounded[place])


@numba.njit(**KERNEL)
def adamw_table_update(
    weights: np.ndarray,
    momentum: np.ndarray,
    velocity: np.ndarray,
    has_moments: np.ndarray,
    places: np.ndarray,
    gradients: np.ndarray,
    numbers: np.ndarray,
) -> None:
    """As `adamw_update`, of a table of which few rows have a gradient; other rows only decay.

    Args:
        weights, momentum, velocity: float32 [rows, width], written to.
        has_moments: bool [rows], false where both moments are 0, written to.
        places: int32 [rows], the row's index in `gradients`, below 0 for none.
        gradients: float32 [number, width].
    """
    decay = numbers[1]
    none = np.empty(0, np.float32)
    zeros = np.zeros(weights.shape[1], np.float32)
    scaled = np.empty(weights.shape[1], np.float32)
    for row in range(weights.shape[0]):
        w = weights[row]
        if places[row] >= 0:
            _scaled_sum(gradients[places[row]], none, numbers[0], scaled)
            _update_block(w, momentum[row], velocity[row], scaled, numbers)
            has_moments[row] = True
        elif has_moments[row]:
            _update_block(w, momentum[row], velocity[row], zeros, numbers)
        elif decay != _ZERO:
            for place in range(w.size):
                w[place] -= w[place] * decay


@numba.njit(**KERNEL)
def find_moments(momentum: np.ndarray, velocity: np.ndarray, has_moments: np.ndarray) -> None:
    """Finds rows with a moment other than 0 in float32 [rows, width]; writes bool [rows]."""
    for row in range(momentum.shape[0]):
        has_moments[row] = _has_any(velocity[row]) or _has_any(momentum[row])


@numba.njit(**KERNEL)
def squared_norm(first: np.ndarray, second: np.ndarray) -> float:
    """Sum of the squares of a gradient of two parts, see `adamw_update`."""
    gradients = np.empty(_BLOCK, np.float32)
    total = 0.0
    for start in range(0, first.size, _BLOCK):
        part = first[start : start + _BLOCK]
        _scaled_sum(part, second[start : start + _BLOCK], _ONE, gradients)
        total += _sum_of_squares(gradients[: part.size])
    return total


@numba.njit(**KERNEL)
def _update_block(
    w: np.ndarray, m: np.ndarray, v: np.ndarray, gradients: np.ndarray, numbers: np.ndarray
) -> None:
    decay, beta_1, beta_2, rate = numbers[1], numbers[2], numbers[3], numbers[4]
    epsilon = numbers[5]
    for place in range(w.size):
        gradient = gradients[place]
        mean = m[place] + (gradient - m[place]) * (_ONE - beta_1)
        square = v[place] + (gradient * gradient - v[place]) * (_ONE - beta_2)
        m[place] = mean
        v[place] = square
        w[place] = w[place] - w[place] * decay - mean * rate / (np.sqrt(square) + epsilon)


@numba.njit(**KERNEL)
def _has_any(values: np.ndarray) -> bool:
    for start in range(0, values.size, 64):
        found = False
        for place in range(start, min(start + 64, values.size)):
            found |= values[place] != _ZERO
        if found:
            return True
    return False


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


@functools.cache
def adamw_entry(kind: Any, has_copy: bool) -> Any:
    """Compiles the update for: both parts of the gradient, of `kind`; numbers; weights, momentum,
    velocity; and the bfloat16 copy of the weights if there is one.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        copy = vector(data, dims, 6, np.uint16)[start:stop] if has_copy else np.empty(0, np.uint16)
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

    return entry


@functools.cache
def adamw_table_entry() -> Any:
    """Of places, gradients, numbers; weights, momentum, velocity, has_moments."""

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        weights = rows_of(data, dims, 3, start, stop, np.float32)
        places = vector(data, dims, 0, np.int32)[start:stop]
        gradients = vector(data, dims, 1, np.float32).reshape((-1, weights.shape[1]))
        if np.max(places) >= gradients.shape[0]:
            return MISFIT
        adamw_table_update(
            weights,
            rows_of(data, dims, 4, start, stop, np.float32),
            rows_of(data, dims, 5, start, stop, np.float32),
            vector(data, dims, 6, np.bool_)[start:stop],
            places,
            gradients,
            vector(data, dims, 2, np.float32),
        )
        return DONE

    return entry


@functools.cache
def find_moments_entry() -> Any:
    """Of momentum, velocity; has_moments."""

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        find_moments(
            rows_of(data, dims, 0, start, stop, np.float32),
            rows_of(data, dims, 1, start, stop, np.float32),
            vector(data, dims, 2, np.bool_)[start:stop],
        )
        return DONE

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
