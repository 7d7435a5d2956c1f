"""AdamW's update, and the norm of a gradient, in one pass over memory each.

The update of a large variable reads weights, two moments and the gradient, and writes weights,
moments and perhaps a bfloat16 copy: it is limited by memory, not by arithmetic. TensorFlow's
operations would read and write some of these several times. A gradient comes in the form in which
it was computed, so that no pass is spent on converting it: two parts to be added (of the two parts
of a batch), or only the rows of a table that are not 0.

Invariant: the order of operations is that of TensorFlow's kernels, and blocks are always of the
same size, so results do not depend on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from bert_tf.base.compiled import numba
from bert_tf.cpu.kernels import KERNEL, SUMMING_KERNEL
from bert_tf.cpu.kernels.native import DONE, ENTRY, MISFIT, rows_of, vector
from bert_tf.cpu.kernels.numbers import narrow, wide
from bert_tf.cpu.kernels.operation import in_place, kind_of

# The gradient of one variable. Two tensors, in bfloat16 or float32, are the parts of a float32 sum.
# Slices are float32 and contain all rows that are not 0, each of them once.
Gradient: TypeAlias = "tf.Tensor | tuple[tf.Tensor, tf.Tensor] | tf.IndexedSlices"
_LARGE = 2**17  # size from which a variable is worth the call of a kernel
_BLOCK = 512  # size of blocks, which stay in the first cache of a core from loop to loop
_SEARCHED = 64  # size of blocks in which a number other than 0 is searched for
# Places in the numbers of a step, see `adamw_update`.
_FACTOR = 0
_DECAY = 1
_BETA_1 = 2
_BETA_2 = 3
_RATE = 4
_EPSILON = 5
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


def is_large(values: Any) -> bool:
    """Return whether a variable or gradient is large enough for a kernel."""
    return (values.shape.num_elements() or 0) >= _LARGE


class InPlaceAdamW:
    """AdamW's updates of large variables on CPUs, in one pass over memory.

    If the gradient of a table is given as rows, an update skips the moments of rows that never had
    a gradient, which are 0.

    Warning: updates write to the memory of variables without TensorFlow's knowledge. Use it with
    one replica, inside a TensorFlow function, and call `take_memory` after anything else has
    read or assigned the variables. Values that the function has read before must be used before the
    update, because TensorFlow does not wait for them. All values that the gradients depend on are.

    Args:
        variables: Keras variables of the model; the large ones in float32 on a CPU are updated
            here.
        momentums, velocities: their first and second moments.
        copies: bfloat16 copies of weights, by the index of the variable, which updates refresh.
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
        # By the index of a table, bool [rows]: whether a moment of the row may be other than 0. Not
        # saved, since `take_memory` finds them.
        self._has_moments = {
            index: tf.Variable(tf.zeros(weights.shape[0], tf.bool), trainable=False)
            for index, (weights, *_) in self._values.items()
            if len(weights.shape) == 2 and index not in copies
        }

    def __contains__(self, index: int) -> bool:
        return index in self._values

    def takes_rows(self, index: int) -> bool:
        """Return whether the gradient of a variable may be given as rows."""
        return index in self._has_moments

    def take_memory(self) -> None:
        """Give variables memory that no tensor, assigned or read before, shares."""
        for values in self._values.values():
            for owner in values:
                owner.assign(tf.raw_ops.DeepCopy(x=owner.read_value()))
        for index, has_moments in self._has_moments.items():
            in_place(find_moments_entry(), self._values[index][1:], [has_moments], row_axes=1)

    def update(self, index: int, gradient: Gradient, numbers: tf.Tensor) -> None:
        """Update a variable and its moments.

        Args:
            index: index of the variable.
            gradient: in any form.
            numbers: float32 [6], see `adamw_update`.
        """
        if isinstance(gradient, tf.IndexedSlices):
            self._update_table(index, gradient, numbers)
            return
        copies = [self._copies[index]] if index in self._copies else []
        first, second = gradient if isinstance(gradient, tuple) else (gradient, tf.zeros([0]))
        entry = adamw_entry(kind_of(first), bool(copies))
        in_place(entry, [first, second, numbers], [*self._values[index], *copies], row_axes=0)

    def _update_table(self, index: int, gradient: tf.IndexedSlices, numbers: tf.Tensor) -> None:
        """Update a table from the rows of its gradient."""
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
    """Update weights and moments, in the order of operations of TensorFlow's kernels.

    Args:
        weights, momentum, velocity: float32 [size], written to.
        copy: bfloat16 as uint16, [size], the weights after the update; [0] for none.
        first, second: parts of the gradient, float32, or bfloat16 as uint16, [size]; [0] for a
            second part that is 0.
        numbers: float32 [6]: the factor of the gradient (0 makes any gradient 0, also one that is
            not finite), learning rate x decay, beta_1, beta_2, the learning rate with the
            correction of bias, and epsilon as added to the root of the uncorrected second moment.
    """
    gradients = np.empty(_BLOCK, np.float32)
    for start in range(0, weights.size, _BLOCK):
        w = weights[start : start + _BLOCK]
        m = momentum[start : start + _BLOCK]
        v = velocity[start : start + _BLOCK]
        _scaled_sum(
            first[start : start + _BLOCK],
            second[start : start + _BLOCK],
            numbers[_FACTOR],
            gradients,
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
    """Like `adamw_update`, for a table of which few rows have a gradient.

    Rows that never had one have no moments to read or write. They only decay.

    Args:
        weights, momentum, velocity: float32 [rows, width], written to.
        has_moments: bool [rows], False if both moments are 0, written to.
        places: int32 [rows], index of the row in `gradients`, below 0 for none.
        gradients: float32 [number, width].
        numbers: float32 [6], see `adamw_update`.
    """
    decay = numbers[_DECAY]
    none = np.empty(0, np.float32)
    zeros = np.zeros(weights.shape[1], np.float32)
    scaled = np.empty(weights.shape[1], np.float32)
    for row in range(weights.shape[0]):
        w = weights[row]
        if places[row] >= 0:
            _scaled_sum(gradients[places[row]], none, numbers[_FACTOR], scaled)
            _update_block(w, momentum[row], velocity[row], scaled, numbers)
            has_moments[row] = True
        elif has_moments[row]:
            _update_block(w, momentum[row], velocity[row], zeros, numbers)
        elif decay != _ZERO:
            for place in range(w.size):
                w[place] -= w[place] * decay


@numba.njit(**KERNEL)
def find_moments(momentum: np.ndarray, velocity: np.ndarray, has_moments: np.ndarray) -> None:
    """Find the rows with a moment other than 0.

    Args:
        momentum, velocity: float32 [rows, width].
        has_moments: bool [rows], written to.
    """
    for row in range(momentum.shape[0]):
        has_moments[row] = _has_any(velocity[row]) or _has_any(momentum[row])


@numba.njit(**KERNEL)
def squared_norm(first: np.ndarray, second: np.ndarray) -> float:
    """Return the sum of the squares of a gradient of two parts, see `adamw_update`."""
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
    """Update a block; arguments are parts of those of `adamw_update`."""
    decay = numbers[_DECAY]
    beta_1 = numbers[_BETA_1]
    beta_2 = numbers[_BETA_2]
    rate = numbers[_RATE]
    epsilon = numbers[_EPSILON]
    for place in range(w.size):
        gradient = gradients[place]
        mean = m[place] + (gradient - m[place]) * (_ONE - beta_1)
        square = v[place] + (gradient * gradient - v[place]) * (_ONE - beta_2)
        m[place] = mean
        v[place] = square
        w[place] = w[place] - w[place] * decay - mean * rate / (np.sqrt(square) + epsilon)


@numba.njit(**KERNEL)
def _has_any(values: np.ndarray) -> bool:
    """Return whether any number is not 0."""
    for start in range(0, values.size, _SEARCHED):
        found = False
        for place in range(start, min(start + _SEARCHED, values.size)):
            found |= values[place] != _ZERO
        if found:
            return True
    return False


@numba.njit(**KERNEL)
def _scaled_sum(
    first: np.ndarray, second: np.ndarray, factor: np.float32, gradients: np.ndarray
) -> None:
    """Write the sum of two parts times a factor; 0 if the factor is 0."""
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
    """Return the entry of `adamw_update`.

    Inputs: both parts of the gradient, of `kind`; numbers. Written to: weights, momentum, velocity;
    the bfloat16 copy, if there is one.
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
    """Return the entry of `adamw_table_update`.

    Inputs: places, gradients, numbers. Written to: weights, momentum, velocity, has_moments.
    """

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
    """Return the entry of `find_moments`. Inputs: momentum, velocity. Written to: has_moments."""

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
    """Return the entry of `squared_norm`. Inputs: two parts. Output: [1], a sum over rows."""

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        first = vector(data, dims, 0, kind)[start:stop]
        second = vector(data, dims, 1, kind)[start:stop]
        vector(data, dims, 2, np.float32)[0] = squared_norm(first, second)
        return DONE

    return entry
