"""Averages of a model's weights over its steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf


class WeightAverages:
    """Exponential moving averages of variables (Polyak & Juditsky 1992, as commonly used).

    The decay grows with the step number up to `decay`, so that the first weights are soon
    forgotten: min(decay, (1 + n) / (10 + n)), as in `tf.train.ExponentialMovingAverage` and TF
    Model Garden's `ema_optimizer.py`.
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

    def update(self, step: tf.Tensor, applied: tf.Tensor) -> None:
        """Moves the averages; called by every replica after each step.

        `step` is int32 [], from 0; `applied` is float32 [], 0 to leave them unchanged.
        """
        number = tf.cast(step, tf.float32)
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
        """Gives the variables their averages' values inside the block."""
        weights = [tf.convert_to_tensor(variable) for variable in self._averaged]
        _assign(self._averaged, [tf.convert_to_tensor(average) for average in self.variables])
        try:
            yield
        finally:
            _assign(self._averaged, weights)


def _assign(variables: list[tf.Variable], values: list[tf.Tensor]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
