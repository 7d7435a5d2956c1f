"""Loss and metrics of a model over a data set."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from bert_tf.base.processor import map_ahead
from bert_tf.cpu.cores import operations_at_once
from bert_tf.training.arithmetic import Arithmetic
from bert_tf.training.distribution import distributed_iterator
from bert_tf.training.protocols import Batch, TaskLoss
from bert_tf.xla.forward import compiled


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """Means of the loss and the metrics over a finite data set; made once, run often.

    XLA compiles them where it compiles all of a training step of the same arithmetic.

    Attributes:
        model: a built Keras model.
        loss: loss of the task; also computes the metrics.
        strategy: strategy that batches are distributed by.
        make_dataset: opens the data set. The number of rows of each batch must be a multiple of the
            number of replicas.
        arithmetic: that of the training step.
    """

    model: Any
    loss: TaskLoss
    strategy: tf.distribute.Strategy
    make_dataset: Callable[[], tf.data.Dataset]
    arithmetic: Arithmetic = dataclasses.field(default_factory=Arithmetic)

    def run(self) -> dict[str, float]:
        """Return means by name: `loss`, the terms of the loss and the metrics; {} without rows."""
        totals: dict[str, tuple[float, float]] = {}
        batches = distributed_iterator(self.strategy, self.make_dataset)
        at_once = operations_at_once()
        mapped: Callable[..., Iterator[dict[str, tuple[tf.Tensor, tf.Tensor]]]] = map
        if at_once > 1:  # otherwise, replicas must be entered from the thread of the strategy
            mapped = functools.partial(map_ahead, threads=at_once, depth=at_once)
        for sums in mapped(self._batch_sums, batches):
            for name, (total, weight) in sums.items():
                total_before, weight_before = totals.get(name, (0.0, 0.0))
                totals[name] = (total_before + float(total), weight_before + float(weight))
        if not totals:
            return {}
        loss = 0.0
        means = {}
        for name, (total, weight) in totals.items():
            kind, _, own_name = name.partition("/")
            mean = total / weight if weight else 0.0
            means[own_name] = mean
            if kind == "loss":
                loss += mean
        # The loss comes first, and replaces the only term of a task that calls it `loss`.
        return {"loss": loss} | means | {"loss": loss}

    @tf.function(autograph=False, reduce_retracing=True)
    def _batch_sums(self, batch: Batch) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
        sums = self.strategy.run(self._replica_sums, args=(batch,))
        return tf.nest.map_structure(
            lambda value: self.strategy.experimental_local_results(value)[0], sums
        )

    def _own_sums(self, batch: Batch) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
        weights = self.loss.weights(batch)
        parts = self.loss(self.model, batch, training=False, dropout_key=None)
        sums = {f"loss/{term}": (parts.losses[term], weight) for term, weight in weights.items()}
        return sums | {f"metric/{name}": pair for name, pair in parts.metrics.items()}

    @functools.cached_property
    def _compiled_sums(self) -> Callable[..., dict[str, tuple[tf.Tensor, tf.Tensor]]]:
        return compiled(self._own_sums, self.arithmetic.form())

    def _replica_sums(self, batch: Batch) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
        sums_of = self._compiled_sums if self.arithmetic.compiles_all else self._own_sums
        sums = sums_of(batch)
        if self.strategy.num_replicas_in_sync == 1:
            return sums
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
