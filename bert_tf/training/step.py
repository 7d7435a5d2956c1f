"""The training step: weights, gradients, accumulation, clipping, update, compiled for any strategy.

One update, on every replica, for its share of the batch:
1. the weight of every loss term, summed over all replicas (no model needed);
2. gradients of sum(losses[term] / global weight[term]), part after part of an accumulated batch;
3. the sum of gradients and of all logged numbers over all replicas;
4. clipping by the global norm of that sum, and the optimizer's update.
Since losses are divided by global weights before they are added up, 1 and 2 replicas, and 1 and 2
parts, compute the same gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.seeds import int32_seed
from bert_tf.training.devices.throughput import WORK_COUNTS, count_work
from bert_tf.training.optimizers.base import StepOptimizer
from bert_tf.training.optimizers.weight_average import WeightAverages
from bert_tf.training.plan.protocols import Batch, LossParts, TaskLoss

INITIAL_LOSS_SCALE = 2.0**15
LOSS_SCALE_GROWTH_STEPS = 2000
_RATES_MULTIPLE = 128  # vectors of rates have few lengths, since each one is traced anew


class TrainingStep:
    """Several updates in one call of a compiled function.

    Args:
        model: a built Keras model.
        loss: the task's loss.
        optimizer: built on the model's trainable variables.
        strategy: what the updates are spread over.
        clip_norm: global norm that gradients are clipped to; 0 does not clip.
        seed: any whole number; first half of the dropout key.
        use_xla: whether the gradients are compiled by XLA.
        scale_loss: dynamic loss scaling, for float16: a step whose gradients overflow is skipped
            and the scale halved; after 2,000 good steps it is doubled.
        averages: of the weights, moved after every update.
    """

    def __init__(
        self,
        *,
        model: Any,
        loss: TaskLoss,
        optimizer: StepOptimizer,
        strategy: tf.distribute.Strategy,
        clip_norm: float = 1.0,
        seed: int = 1,
        use_xla: bool = False,
        scale_loss: bool = False,
        averages: WeightAverages | None = None,
    ):
        self._averages = averages
        self._model = model
        self._loss = loss
        self._optimizer = optimizer
        self._strategy = strategy
        self._clip_norm = clip_norm
        self._seed = seed
        self._scale_loss = scale_loss
        self._replicas = strategy.num_replicas_in_sync
        self._names: list[str] = []
        with strategy.scope():
            self.loss_scale = tf.Variable(
                INITIAL_LOSS_SCALE if scale_loss else 1.0,
                trainable=False,
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            )
            self.good_steps = tf.Variable(
                0,
                dtype=tf.int64,
                trainable=False,
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            )
        # Neither the sums over replicas, which XLA cannot compile on all devices, nor the update,
        # whose fused kernel it does not beat: a third less to compile.
        self._gradients = self._summed_gradients
        if use_xla:
            self._gradients = tf.function(self._summed_gradients, autograph=False, jit_compile=True)

    def run(
        self,
        batches: Iterator[Batch],
        *,
        first_step: int,
        learning_rates: np.ndarray,
        accumulation_steps: int = 1,
    ) -> dict[str, np.ndarray]:
        """Makes `len(learning_rates)` updates with the next batches.

        Args:
            batches: iterator of a distributed dataset, see `bert_tf.training.devices.distribution`.
            first_step: number of the first update, from 0; second half of its dropout key.
            learning_rates: float [n], one an update.
            accumulation_steps: parts that a batch is computed in, one after the other.

        Returns:
            By name, float32 [n]: `loss`, each loss term, each metric, `gradient_norm` (before
            clipping), `finite` (1 if the update was made), `loss_scale`, and `WORK_COUNTS`.
        """
        count = len(learning_rates)
        padded = np.zeros(-(-count // _RATES_MULTIPLE) * _RATES_MULTIPLE, np.float32)
        padded[:count] = learning_rates
        rows = self._run(
            batches,
            tf.constant(first_step, tf.int32),
            tf.constant(count, tf.int32),
            tf.constant(padded),
            accumulation_steps,
        ).numpy()
        return {name: rows[:, column] for column, name in enumerate(self._names)}

    @tf.function
    def _run(
        self,
        batches: Iterator[Batch],
        first_step: tf.Tensor,
        count: tf.Tensor,
        learning_rates: tf.Tensor,
        parts: int,
    ) -> tf.Tensor:
        rows = tf.TensorArray(tf.float32, size=count)
        for index in tf.range(count):
            row = self._strategy.run(
                self._replica_update,
                args=(next(batches), first_step + index, learning_rates[index], parts),
            )
            rows = rows.write(index, self._strategy.experimental_local_results(row)[0])
        return rows.stack()

    # Nothing in it needs autograph, whose look at every call under it is slow to trace.
    @tf.autograph.experimental.do_not_convert
    def _replica_update(
        self, batch: Batch, step: tf.Tensor, learning_rate: tf.Tensor, parts: int
    ) -> tf.Tensor:
        weights = self._over_replicas(self._loss.weights(batch))
        scale = tf.convert_to_tensor(self.loss_scale)
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        gradients, sums = self._over_replicas(
            self._gradients(batch, weights, scale, step, tf.convert_to_tensor(replica), parts)
        )
        norm = tf.linalg.global_norm(gradients) / scale
        loss = tf.add_n([sums[f"loss/{term}"] for term in weights])
        finite = tf.cast(tf.math.is_finite(norm) & tf.math.is_finite(loss), tf.float32)
        factor = 1.0 / scale
        if self._clip_norm:
            factor *= tf.minimum(1.0, self._clip_norm / tf.maximum(norm, 1e-12))
        # Without loss scaling one bad step refuses all that follow, until the loop looks.
        admitted = finite if self._scale_loss else finite * self._optimizer.admitted
        self._optimizer.admit(admitted, learning_rate)
        # A product that is 0 where the factor is, even for gradients that are not finite.
        factor = tf.where(admitted > 0, factor, 0.0)
        self._optimizer.apply([tf.math.multiply_no_nan(grad, factor) for grad in gradients])
        if self._averages is not None:
            self._averages.update(step, admitted)
        if self._scale_loss:
            self._adapt_loss_scale(finite)
        logged = {"loss": loss}
        logged |= {term: sums[f"loss/{term}"] for term in weights if term != "loss"}
        for name in sums:
            kind, _, metric = name.partition("/")
            if kind == "sum":
                logged[metric] = tf.math.divide_no_nan(sums[name], sums[f"weight/{metric}"])
        logged |= {
            "gradient_norm": norm,
            "finite": finite,
            "loss_scale": scale,
            **{name: sums[name] for name in WORK_COUNTS},
        }
        self._names = list(logged)
        return tf.stack(list(logged.values()))

    def _over_replicas(self, values: Any) -> Any:
        if self._replicas == 1:
            return values
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, values)

    def _summed_gradients(
        self,
        batch: Batch,
        weights: dict[str, tf.Tensor],
        scale: tf.Tensor,
        step: tf.Tensor,
        replica: tf.Tensor,
        parts: int,
    ) -> tuple[list[tf.Tensor], dict[str, tf.Tensor]]:
        key = tf.stack([tf.constant(int32_seed(self._seed), tf.int32), step])
        if parts == 1:
            if self._replicas > 1:
                key = tf.random.fold_in(key, replica, alg="philox")
            return self._part_gradients(batch, weights, scale, key)
        split = {name: _split_rows(tensor, parts) for name, tensor in batch.items()}

        def part_gradients(part: tf.Tensor) -> tuple[list[tf.Tensor], dict[str, tf.Tensor]]:
            part_key = tf.random.fold_in(key, part * self._replicas + replica, alg="philox")
            part_batch = {name: tensor[part] for name, tensor in split.items()}
            return self._part_gradients(part_batch, weights, scale, part_key)

        def add_part(part: tf.Tensor, total: Any) -> tuple[tf.Tensor, Any]:
            return part + 1, tf.nest.map_structure(tf.add, total, part_gradients(part))

        _, total = tf.while_loop(
            lambda part, _: part < parts,
            add_part,
            (tf.constant(1), part_gradients(tf.constant(0))),
            maximum_iterations=parts,
        )
        return total

    def _part_gradients(
        self, batch: Batch, weights: dict[str, tf.Tensor], scale: tf.Tensor, key: tf.Tensor
    ) -> tuple[list[tf.Tensor], dict[str, tf.Tensor]]:
        variables = [variable.value for variable in self._model.trainable_variables]
        with tf.GradientTape() as tape:
            parts = self._loss(self._model, batch, training=True, dropout_key=key)
            losses = {
                term: tf.math.divide_no_nan(tf.cast(parts.losses[term], tf.float32), weight)
                for term, weight in weights.items()
            }
            scaled = tf.add_n(list(losses.values())) * scale
        gradients = [
            tf.zeros_like(variable) if gradient is None else tf.convert_to_tensor(gradient)
            for variable, gradient in zip(variables, tape.gradient(scaled, variables), strict=True)
        ]
        return gradients, _numbers(losses, parts, batch)

    def _adapt_loss_scale(self, finite: tf.Tensor) -> None:
        good = tf.where(finite > 0, self.good_steps + 1, 0)
        grow = good >= LOSS_SCALE_GROWTH_STEPS
        scale = tf.where(
            finite > 0, self.loss_scale * tf.where(grow, 2.0, 1.0), self.loss_scale / 2
        )
        self.loss_scale.assign(tf.maximum(scale, 1.0))
        self.good_steps.assign(tf.where(grow, tf.zeros_like(good), good))


def _numbers(losses: dict[str, tf.Tensor], parts: LossParts, batch: Batch) -> dict[str, tf.Tensor]:
    numbers = {f"loss/{term}": loss for term, loss in losses.items()}
    for name, (total, weight) in parts.metrics.items():
        numbers[f"sum/{name}"] = tf.cast(total, tf.float32)
        numbers[f"weight/{name}"] = tf.cast(weight, tf.float32)
    return numbers | count_work(batch)


def _split_rows(tensor: tf.Tensor, parts: int) -> tf.Tensor:
    """[rows, ...] to [parts, rows / parts, ...]."""
    static = tensor.shape.as_list()
    rows = static[0] // parts if static[0] is not None else tf.shape(tensor)[0] // parts
    dimensions = [
        size if size is not None else tf.shape(tensor)[axis] for axis, size in enumerate(static)
    ]
    return tf.reshape(tensor, [parts, rows, *dimensions[1:]])
