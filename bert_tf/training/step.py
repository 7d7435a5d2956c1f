"""The training step: gradients, accumulation, clipping and update, under any strategy.

One step, on every replica, for its rows of the batch:
1. Compute the weight of every loss term, and sum it over all replicas. This needs no model.
2. Compute the gradients of sum(losses[term] / global weight[term]), and add them up over
   micro-batches.
3. Sum the gradients and all logged numbers over all replicas.
4. Clip by the global norm of that sum, and let the optimizer update the weights.

Invariant: losses are divided by global weights before they are added up, so any number of replicas
and micro-batches computes the same gradients, up to rounding and dropout masks.

The loss scale of float16 follows Micikevicius et al. 2018, "Mixed Precision Training".
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import int32_seed
from bert_tf.cpu.availability import is_available
from bert_tf.layers.implementation import PLAIN, Implementation, computing_by
from bert_tf.training.arithmetic import Arithmetic, has_accelerator
from bert_tf.training.distribution import BATCHES_AHEAD, split_rows
from bert_tf.training.optimizers import StepOptimizer
from bert_tf.training.protocols import Batch, LossParts, TaskLoss
from bert_tf.training.throughput import WORK_COUNTS, count_work
from bert_tf.training.weight_average import WeightAverages
from bert_tf.xla.step_programs import STEPS_PER_PROGRAM, StepPrograms

if TYPE_CHECKING:
    from bert_tf.cpu.backend import CpuBackend

# As in Keras' `LossScaleOptimizer`. A scale that is too high costs a skipped step; growth makes up
# for one that is too low.
INITIAL_LOSS_SCALE = 2.0**15
LOSS_SCALE_GROWTH_STEPS = 2000
# Gradients in the form of a backend, one per variable, and the numbers to log, float32 [] by name.
_Gradients: TypeAlias = tuple[list[Any], dict[str, tf.Tensor]]
# Vectors of learning rates are padded to a multiple of this length. Each length is traced anew.
_RATES_MULTIPLE = 128
_SMALLEST_NORM = 1e-12  # avoids 0/0 for gradients that are all 0


class TrainingStep:
    """Several steps in one call of a compiled function.

    In float16 losses are scaled: a step whose gradients overflow is skipped and the scale is
    halved; after 2,000 good steps it is doubled.

    If `arithmetic.compiles_all`, a whole step on one device is one program. On several GPUs it is
    two programs, before and after the sum of the gradients, which are packed into one vector. On
    TPUs, and with `arithmetic.cpu_kernels`, XLA only compiles the gradients.

    Args:
        model: a built Keras model with the dtype policy of `arithmetic`.
        loss: loss of the task.
        optimizer: built on the trainable variables of the model.
        strategy: strategy that steps are distributed by.
        arithmetic: how gradients are computed.
        clip_norm: global norm that gradients are clipped to; 0 does not clip.
        seed: any integer; first half of the dropout key.
        averages: averages of the weights, updated after every step; None for none.

    Attributes:
        model: the model.
        compiled: the function of one step on one replica.
        loss_scale: float32 [] variable; 1 if losses are not scaled.
        good_steps: int64 [] variable, steps since the scale last changed.
    """

    def __init__(
        self,
        *,
        model: Any,
        loss: TaskLoss,
        optimizer: StepOptimizer,
        strategy: tf.distribute.Strategy,
        arithmetic: Arithmetic,
        clip_norm: float = 1.0,
        seed: int = 1,
        averages: WeightAverages | None = None,
    ):
        self.arithmetic = arithmetic
        self._averages = averages
        self.model = model
        self._loss = loss
        self._optimizer = optimizer
        self._strategy = strategy
        self._clip_norm = clip_norm
        self._seed = seed
        self._scale_loss = arithmetic.precision.scale_loss
        self._replicas = strategy.num_replicas_in_sync
        self._names: list[str] = []  # of the numbers that a step logs, set while tracing
        number = functools.partial(
            tf.Variable, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
        )
        with strategy.scope():
            self.loss_scale = number(INITIAL_LOSS_SCALE if self._scale_loss else 1.0)
            self.good_steps = number(0, dtype=tf.int64)
            is_alone = not tf.distribute.has_strategy()
        self._backend = self._make_backend(arithmetic)
        # Whether replicas exchange one vector of all gradients, instead of a tensor per variable.
        self._is_packed = arithmetic.compiles_all and not (
            is_alone or isinstance(strategy, tf.distribute.TPUStrategy)
        )
        self._sum_dtype = arithmetic.gradient_sum
        self._sum_names: list[str] = []  # of the numbers to sum over replicas, set while tracing
        self._gradients = self._summed_gradients
        self.compiled: Any = self._replica_step
        self._programs: StepPrograms | None = None  # of several steps, if XLA compiles all of one
        if arithmetic.compiles_all and is_alone:
            self.compiled = _compiled(self._replica_step)
            self._programs = StepPrograms(self._replica_step)
        elif self._is_packed:
            self._gradients = _compiled(self._packed_gradients)
        elif arithmetic.precision.use_xla:
            # Excludes sums over replicas, which XLA cannot compile on all devices, and kernels.
            self._gradients = _compiled(self._summed_gradients)

    def _make_backend(self, arithmetic: Arithmetic) -> PlainBackend | CpuBackend:
        if not arithmetic.cpu_kernels or has_accelerator() or not is_available():
            form = arithmetic.form()
            return PlainBackend(self._gradients_of, self._optimizer, form)
        from bert_tf.cpu.backend import CpuBackend

        return CpuBackend(
            self._gradients_of,
            model=self.model,
            optimizer=self._optimizer,
            use_kernels=arithmetic.precision.use_kernels,
            shards=arithmetic.shards,
            replicas=self._replicas,
        )

    def trace_counts(self) -> dict[str, int]:
        """Return how often the steps, and gradients that XLA compiles separately, were traced."""
        gradients = getattr(self._gradients, "experimental_get_tracing_count", lambda: 0)
        return {"steps": self._run.experimental_get_tracing_count(), "gradients": gradients()}

    @property
    def variables(self) -> dict[str, list[tf.Variable]]:
        """Return all variables that steps change, by their part of a checkpoint."""
        return {
            "model": self.model.variables,
            "optimizer": self._optimizer.variables,
            "loss_scale": [self.loss_scale, self.good_steps],
            "average": self._averages.variables if self._averages else [],
        }

    @property
    def batches_ahead(self) -> int:
        """How many batches to prepare while the device computes: those of the next program."""
        return BATCHES_AHEAD if self._programs is None else STEPS_PER_PROGRAM

    def run(
        self,
        batches: Iterator[Batch],
        *,
        first_step: int,
        learning_rates: np.ndarray,
        accumulation_steps: int = 1,
        untouched: bool = False,
    ) -> dict[str, np.ndarray]:
        """Run `len(learning_rates)` steps on the next batches.

        Args:
            batches: iterator of a distributed dataset, see `distributed_iterator`.
            first_step: number of the first step, from 0; second half of its dropout key.
            learning_rates: float [n], one per step.
            accumulation_steps: micro-batches that a batch is divided into, computed one after the
                other.
            untouched: whether nothing has read or assigned model and optimizer since the last call.
                True spares copies of the weights and moments, which take 30 ms for 22 million
                weights.

        Returns:
            By name, float32 [n]: `loss`, each loss term, each metric, `gradient_norm` (before
            clipping), `finite` (1 if loss and gradients are), `loss_scale`, and `WORK_COUNTS`.
        """
        count = len(learning_rates)
        padded = np.zeros(-(-count // _RATES_MULTIPLE) * _RATES_MULTIPLE, np.float32)
        padded[:count] = learning_rates
        with self._backend.running():
            if not untouched:
                self._backend.take_variables()
            rows = self._run(
                batches,
                tf.constant(first_step, tf.int32),
                tf.constant(count, tf.int32),
                tf.constant(padded),
                accumulation_steps,
            ).numpy()
        return {name: rows[:, column] for column, name in enumerate(self._names)}

    # Autograph would inspect every call below this one, which makes tracing slow.
    @tf.function(autograph=False)
    def _run(
        self,
        batches: Any,
        first_step: tf.Tensor,
        count: tf.Tensor,
        learning_rates: tf.Tensor,
        micro_batches: int,
    ) -> tf.Tensor:
        if self._programs is not None and self._programs.can_stack(batches):
            return self._programs.run(
                batches,
                first_step=first_step,
                count=count,
                learning_rates=learning_rates,
                micro_batches=micro_batches,
            )

        def add_step(index: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            arguments = (first_step + index, learning_rates[index], micro_batches)
            row = self._strategy.run(self.compiled, args=(batches.get_next(), *arguments))
            row = self._strategy.experimental_local_results(row)[0]
            return index + 1, rows.write(index, row)

        _, rows = tf.while_loop(
            lambda index, _: index < count,
            add_step,
            (tf.constant(0), tf.TensorArray(tf.float32, size=count)),
            maximum_iterations=count,
        )
        return rows.stack()

    def _replica_step(
        self, batch: Batch, step: tf.Tensor, learning_rate: tf.Tensor, micro_batches: int
    ) -> tf.Tensor:
        """Run one step for the rows of this replica; return the numbers named in `self._names`."""
        weights = self._over_replicas(self._loss.weights(batch))
        scale = tf.convert_to_tensor(self.loss_scale)
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        of_replica = self._gradients(
            batch, weights, scale, step, tf.convert_to_tensor(replica), micro_batches
        )
        if self._is_packed:
            gradients, sums = self._sum_of_packed(*of_replica)
        else:
            gradients, sums = self._over_replicas(of_replica)
        norm = self._backend.norm(gradients) / scale
        loss = tf.add_n([sums[f"loss/{term}"] for term in weights])
        finite = tf.cast(tf.math.is_finite(norm) & tf.math.is_finite(loss), tf.float32)
        factor = 1.0 / scale
        if self._clip_norm:
            factor *= tf.minimum(1.0, self._clip_norm / tf.maximum(norm, _SMALLEST_NORM))
        # Without loss scaling, a bad step is an error, which the loop sees only after the call. All
        # further steps of the call are skipped, so that the weights stay those before the error.
        applied = finite if self._scale_loss else finite * self._optimizer.applied
        self._optimizer.prepare_step(applied, learning_rate, factor)
        if self._is_packed:
            self._optimizer.apply_packed(gradients[0])
        else:
            self._backend.apply(gradients)
        if self._averages is not None:
            self._averages.update(step, applied)
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

    def _packed_gradients(self, *arguments: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the gradients in one vector, and the numbers in another.

        Replicas exchange two messages then, instead of one per variable.
        """
        gradients, sums = self._summed_gradients(*arguments)
        self._sum_names = list(sums)
        vector = tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], axis=0)
        return tf.cast(vector, self._sum_dtype), tf.stack(list(sums.values()))

    def _sum_of_packed(self, gradients: tf.Tensor, numbers: tf.Tensor) -> _Gradients:
        gradients = tf.cast(self._over_replicas(gradients), tf.float32)
        numbers = tf.unstack(self._over_replicas(numbers))
        return [gradients], dict(zip(self._sum_names, numbers, strict=True))

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
        micro_batches: int,
    ) -> _Gradients:
        """Return gradients and numbers of this replica's rows, summed over micro-batches.

        The dropout key is (seed, step). If there are several replicas or micro-batches, their
        numbers are folded into it, so that each draws its own masks.
        """
        key = tf.stack([tf.constant(int32_seed(self._seed), tf.int32), step])
        if micro_batches == 1:
            if self._replicas > 1:
                key = tf.random.fold_in(key, replica, alg="philox")
            return self._backend.gradients(batch, weights, scale, key)
        split = {name: split_rows(tensor, micro_batches) for name, tensor in batch.items()}

        def micro_batch_gradients(index: tf.Tensor) -> _Gradients:
            micro_batch_key = tf.random.fold_in(key, index * self._replicas + replica, alg="philox")
            micro_batch = {name: tensor[index] for name, tensor in split.items()}
            gradients, sums = self._backend.gradients(micro_batch, weights, scale, micro_batch_key)
            return [self._backend.total(gradient) for gradient in gradients], sums

        def add_micro_batch(index: tf.Tensor, total: Any) -> tuple[tf.Tensor, Any]:
            return index + 1, tf.nest.map_structure(tf.add, total, micro_batch_gradients(index))

        _, total = tf.while_loop(
            lambda index, _: index < micro_batches,
            add_micro_batch,
            (tf.constant(1), micro_batch_gradients(tf.constant(0))),
            maximum_iterations=micro_batches,
        )
        return total

    def _gradients_of(
        self, batch: Batch, weights: dict[str, tf.Tensor], scale: tf.Tensor, key: tf.Tensor
    ) -> _Gradients:
        """Return the gradients of one micro-batch, and its numbers.

        Args:
            batch: rows of one micro-batch.
            weights: divisor of each loss term, summed over the global batch.
            scale: factor on the loss, float32 [].
            key: dropout key, int32 [2].
        """
        variables = [variable.value for variable in self.model.trainable_variables]
        with tf.GradientTape() as tape:
            tape.watch(variables)
            parts = self._loss(self.model, batch, training=True, dropout_key=key)
            losses = {
                term: tf.math.divide_no_nan(tf.cast(parts.losses[term], tf.float32), weight)
                for term, weight in weights.items()
            }
            scaled = tf.add_n(list(losses.values())) * scale
        gradients = [
            tf.zeros_like(variable) if gradient is None else gradient
            for variable, gradient in zip(variables, tape.gradient(scaled, variables), strict=True)
        ]
        return gradients, _numbers(losses, parts, batch)

    def _adapt_loss_scale(self, finite: tf.Tensor) -> None:
        good = tf.where(finite > 0, self.good_steps + 1, 0)
        grow = good >= LOSS_SCALE_GROWTH_STEPS
        grown = self.loss_scale * tf.where(grow, 2.0, 1.0)
        scale = tf.where(finite > 0, grown, self.loss_scale / 2)
        self.loss_scale.assign(tf.maximum(scale, 1.0))
        self.good_steps.assign(tf.where(grow, tf.zeros_like(good), good))


class PlainBackend:
    """Computes and applies gradients on any device; `bert_tf.cpu.backend` is the one for CPUs.

    Args:
        compute: takes a batch, the weights of its loss terms, the scale of the loss and a dropout
            key; returns gradients and numbers.
        optimizer: applies the gradients.
        form: the form in which models compute.
    """

    def __init__(
        self,
        compute: Callable[..., _Gradients],
        optimizer: StepOptimizer,
        form: Implementation = PLAIN,
    ):
        self._compute = compute
        self._optimizer = optimizer
        self._form = form

    def running(self) -> AbstractContextManager[None]:
        """Return a context that surrounds each call of the compiled function."""
        return contextlib.nullcontext()

    def take_variables(self) -> None:
        """Prepare for steps after anything else has read or assigned model and optimizer."""

    def gradients(self, *arguments: Any) -> _Gradients:
        """Return gradients of a batch, in the form that the other methods take, and numbers.

        Arguments are those of `compute`.
        """
        with computing_by(self._form):
            gradients, numbers = self._compute(*arguments)
        return [tf.convert_to_tensor(gradient) for gradient in gradients], numbers

    def total(self, gradient: tf.Tensor) -> tf.Tensor:
        """Return a gradient in a form that can be added to those of other micro-batches."""
        return gradient

    def norm(self, gradients: Sequence[tf.Tensor]) -> tf.Tensor:
        """Return the global norm, float32 []."""
        return tf.sqrt(tf.add_n([2.0 * tf.nn.l2_loss(gradient) for gradient in gradients]))

    def apply(self, gradients: Sequence[tf.Tensor]) -> None:
        """Apply gradients that `prepare_step` of the optimizer was called for."""
        self._optimizer.apply(gradients)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return tf.function(function, autograph=False, jit_compile=True)


def _numbers(losses: dict[str, tf.Tensor], parts: LossParts, batch: Batch) -> dict[str, tf.Tensor]:
    """Name the numbers that a micro-batch logs, so that those of all parts add up to plain sums.

    `loss/…` is a loss term, already divided by its global weight. `sum/…` and `weight/…` of a
    metric are divided at the end. `WORK_COUNTS` are counts.
    """
    numbers = {f"loss/{term}": loss for term, loss in losses.items()}
    for name, (total, weight) in parts.metrics.items():
        numbers[f"sum/{name}"] = tf.cast(total, tf.float32)
        numbers[f"weight/{name}"] = tf.cast(weight, tf.float32)
    return numbers | count_work(batch)
