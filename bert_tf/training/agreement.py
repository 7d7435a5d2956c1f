"""Numbers that all workers must decide by alike, though each measures its own."""

from __future__ import annotations

import numpy as np
import tensorflow as tf


class Agreement:
    """Means over the workers of a strategy."""

    def __init__(self, strategy: tf.distribute.Strategy):
        self._strategy = strategy

    def mean(self, numbers: list[float]) -> list[float]:
        """The mean of each number; every worker calls this at the same point of its loop."""
        result = self._means(tf.constant(np.asarray(numbers, dtype=np.float64)))
        return [float(value) for value in result]

    @tf.function
    def _means(self, values: tf.Tensor) -> tf.Tensor:
        def mean(values: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            # The copy is on the replica's device, where `all_reduce` looks for its destination.
            return context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.identity(values))

        result = self._strategy.run(mean, args=(values,))
        return self._strategy.experimental_local_results(result)[0]
