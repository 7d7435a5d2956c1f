"""Large weights in the dtype of products, which all parts of a batch read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from bert_tf.cpu.gradients import is_large


class ComputeCopies:
    """What a model's layers read instead of variables that Keras would convert wherever read.

    Gradients of a copy have its dtype: parts of a batch hand them over in bfloat16.

    Args:
        variables: the trainable ones of a built Keras model.
        dtype: of the copies, the compute dtype of the model.

    Attributes:
        variables: the copies, by their number among the trainable variables. Not saved: `refresh`
            makes them from the weights, and optimizers change them with these.
    """

    def __init__(self, variables: Sequence[Any], dtype: str):
        self._dtype = dtype
        self._originals = {
            number: variable
            for number, variable in enumerate(variables)
            if variable._autocast
            and variable.dtype != dtype
            and len(variable.shape) > 1
            and is_large(variable.value)
        }
        self.variables = {
            number: tf.Variable(tf.cast(original.value, dtype), trainable=False)
            for number, original in self._originals.items()
        }

    def refresh(self) -> None:
        """Converts the current weights."""
        for number, original in self._originals.items():
            self.variables[number].assign(tf.cast(original.value, self._dtype))

    def read(self) -> list[tf.Tensor]:
        """The copies' values."""
        return [copy.read_value() for copy in self.variables.values()]

    @contextlib.contextmanager
    def in_use(self, copies: Sequence[tf.Tensor]) -> Iterator[None]:
        """Layers called in this context read the copies."""
        if not copies:
            yield
            return
        with keras.StatelessScope() as scope:
            for original, copy in zip(self._originals.values(), copies, strict=True):
                scope.add_update((original, copy))
            yield

    def among(self, values: Sequence[Any], copies: Sequence[tf.Tensor]) -> list[Any]:
        """The values of all trainable variables, with copies in the places of theirs."""
        found = list(values)
        for number, copy in zip(self._originals, copies, strict=True):
            found[number] = copy
        return found
