"""Large weights in the dtype of products, converted once per step for all parts of its batch."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

_LARGE = 2**17


class ComputeCopies:
    """What a model's layers read instead of variables that Keras would convert wherever read.

    Gradients of a copy have its dtype: parts of a batch hand them over in bfloat16, and
    `sum_of_parts` converts and adds them in one pass over memory.

    Args:
        model: a built Keras model.
    """

    def __init__(self, model: Any):
        variables = model.trainable_variables
        self._dtype = model.compute_dtype
        self._positions = [
            position
            for position, variable in enumerate(variables)
            if variable._autocast
            and variable.dtype != self._dtype
            and len(variable.shape) > 1
            and variable.value.shape.num_elements() >= _LARGE
        ]
        self._variables = [variables[position] for position in self._positions]

    def read(self) -> list[tf.Tensor]:
        """Converts the current weights."""
        return [tf.cast(variable.value, self._dtype) for variable in self._variables]

    @contextlib.contextmanager
    def in_use(self, copies: Sequence[tf.Tensor]) -> Iterator[None]:
        """Layers called in this context read the copies."""
        if not copies:
            yield
            return
        with keras.StatelessScope() as scope:
            for variable, copy in zip(self._variables, copies, strict=True):
                scope.add_update((variable, copy))
            yield

    def among(self, values: Sequence[Any], copies: Sequence[tf.Tensor]) -> list[Any]:
        """The values of all trainable variables, with copies in the places of theirs."""
        found = list(values)
        for position, copy in zip(self._positions, copies, strict=True):
            found[position] = copy
        return found


def sum_of_parts(*values: tf.Tensor) -> tf.Tensor:
    """The sum of tensors of one shape; float32 where they have less."""
    if values[0].dtype.size >= tf.float32.size:
        return tf.add_n(values)
    return _compiled_sum()(*values)


@functools.cache
def _compiled_sum() -> Callable[..., tf.Tensor]:
    @tf.function(autograph=False, jit_compile=True)
    def converted_sum(*values: tf.Tensor) -> tf.Tensor:
        return functools.reduce(tf.add, (tf.cast(value, tf.float32) for value in values))

    return converted_sum
