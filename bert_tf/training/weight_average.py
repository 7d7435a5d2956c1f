"""Exponential moving averages of a model's weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import tensorflow as tf


class WeightAverages:
    """Exponential moving averages of variables (Polyak & Juditsky 1992, as commonly used).

    After step n the decay is min(decay, (1 + n) / (10 + n)), as in
    `tf.train.ExponentialMovingAverage` and TF Model Garden's `ema_optimizer.py`.

    Args:
        variables: Keras variables, whose values are the first averages.
        decay: limit of the decay, from 0 to 1.
        strategy: strategy that the variables were made under.

    Attributes:
        variables: the averages, in the order of the variables.
    """

    def __init__(self, variables: list[Any], *, decay: float, strategy: tf.distribute.Strategy):
        self._averaged = [variable.value for variable in variables]
        self._decay = decay
        self.variables = []
        for variable in self._averaged:
            with strategy.scope(), strategy.extended.colocate_vars_with(variable):
                self.variables.append(
                    tf.Variable(tf.convert_to_tensor(variable), trainable=False, name="average")
                )

    @classmethod
    def of_model(cls, model: Any, *, decay: float, strategy: tf.distribute.Strategy) -> Self | None:
        """Return averages of the trainable variables of a built model; None if the decay is 0."""
        if not decay:
            return None
        return cls(model.trainable_variables, decay=decay, strategy=strategy)

    def update(self, step: tf.Tensor, applied: tf.Tensor) -> None:
        """Move the averages; every replica must call this after each step.

        Args:
            step: number of the step, from 0, int32 [].
            applied: float32 [], 0 leaves the averages unchanged.
        """
        number = tf.cast(step, tf.float32)
        # Early steps have a lower decay, so that the initial weights are soon forgotten.
        decay = tf.minimum(self._decay, (1.0 + number) / (10.0 + number))

        def move(average: tf.Variable, variable: tf.Tensor, rate: tf.Tensor) -> None:
            average.assign_sub((average - variable) * rate)

        def move_all(strategy: tf.distribute.Strategy, rate: tf.Tensor) -> None:
            for average, variable in zip(self.variables, self._averaged, strict=True):
                strategy.extended.update(average, move, args=(variable, rate), group=False)

        context = tf.distribute.get_replica_context()
        context.merge_call(move_all, args=((1.0 - decay) * applied,))

    @contextmanager
    def in_place_of_weights(self) -> Iterator[None]:
        """Give the variables the values of their averages inside the block."""
        weights = [tf.convert_to_tensor(variable) for variable in self._averaged]
        _assign(self._averaged, [tf.convert_to_tensor(average) for average in self.variables])
        try:
            yield
        finally:
            _assign(self._averaged, weights)


def _assign(variables: list[tf.Variable], values: list[tf.Tensor]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
