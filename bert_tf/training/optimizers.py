"""The optimizers of the training step: AdamW and LAMB as BERT uses them, and StableAdamW.

All subclass a Keras optimizer, so that their variables are saved like Keras' own, but compute
their update here: the numbers of a step are computed once for all variables, and a step whose
gradients are not finite is skipped by numbers instead of by a branch.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from bert_tf.config.sections.loop import LoopSection

if TYPE_CHECKING:
    from bert_tf.cpu.adamw import Gradient, InPlaceAdamW

# The factor of a variable on the learning rate.
RateFactor = Callable[[keras.Variable], float]
_BLOCK = re.compile(r"/block_(\d+)/")  # in the path of a variable of a transformer block


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepScalars:
    """Numbers of one step that are the same for all variables, float32 [] each.

    A skipped step has the values that leave weights and moments unchanged.

    Attributes:
        learning_rate: rate before `rate_factor`; 0 for a skipped step.
        gradient_factor: factor that gradients are multiplied by first; 0 for a skipped step.
        beta_1, beta_2: decay of the moments; 1 for a skipped step.
        beta_1_power, beta_2_power: decay ** number of the step, from 1; 0 without bias correction.
    """

    learning_rate: tf.Tensor
    gradient_factor: tf.Tensor
    beta_1: tf.Tensor
    beta_2: tf.Tensor
    beta_1_power: tf.Tensor
    beta_2_power: tf.Tensor


class StepOptimizer(keras.optimizers.Optimizer):
    """A Keras optimizer with two moments for `bert_tf.training.step`.

    Differences from Keras' own:
    - Gradients arrive already summed over replicas, so `apply` does not sum them again. The step
      clips by the global norm, which needs the sum first.
    - `prepare_step` decides whether `apply` changes anything, regardless of the gradients. That
      skips a step whose gradients are not finite without a conditional, which breaks under
      MirroredStrategy.
    - `prepare_step` takes the factor that clips the gradients, so that scaling, clipping and the
      update are one pass over memory.
    - `rate_factor` multiplies a variable's learning rate, and with it its weight decay.

    Args:
        name: name of the optimizer.
        beta_1, beta_2: decay of the first and second moment.
        epsilon: added to the root of the second moment.
        weight_decay: decoupled weight decay, multiplied by the learning rate; see `decays`.
        bias_correction: whether moments are corrected for starting at 0.
        rate_factor: factor of a variable on the learning rate; None is 1 for all.

    Attributes:
        applied: the argument of `prepare_step`, float32 [] variable.
        gradient_factor: factor of the step's gradients, float32 [] variable.
    """

    def __init__(
        self,
        *,
        name: str,
        beta_1: float,
        beta_2: float,
        epsilon: float,
        weight_decay: float,
        bias_correction: bool = True,
        rate_factor: RateFactor | None = None,
    ):
        super().__init__(learning_rate=0.0, name=name)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.decay = weight_decay
        self.bias_correction = bias_correction
        self._rate_factor = rate_factor

    def build(self, variables: list[keras.Variable]) -> None:
        # These are not variables of the optimizer, so they are not saved: a resumed run starts
        # with 1.
        self.applied = _scalar_variable()
        self.gradient_factor = _scalar_variable()
        super().build(variables)
        # First and second moments, in the order of the variables.
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        self._decays = tuple(decays(variable) for variable in variables)
        self._rate_factors = tuple(
            self._rate_factor(variable) if self._rate_factor else 1.0 for variable in variables
        )

    def prepare_step(
        self, applied: tf.Tensor, learning_rate: tf.Tensor, gradient_factor: tf.Tensor | float = 1.0
    ) -> None:
        """Set learning rate and scale of the next `apply`, or have it skipped.

        Args:
            applied: float32 [], 1 to apply the step, 0 to leave weights, moments and the number of
                iterations unchanged.
            learning_rate: float32 [].
            gradient_factor: float32 [], factor that gradients are multiplied by.
        """
        self.applied.assign(applied)
        self.gradient_factor.assign(tf.where(applied > 0, gradient_factor, 0.0))
        self.learning_rate.assign(learning_rate * applied)

    def apply(self, grads: Sequence[tf.Tensor], trainable_variables: Any = None) -> None:
        """Apply the step or skip it, as `prepare_step` has set."""
        super().apply(grads, trainable_variables)
        skipped = 1 - tf.cast(tf.convert_to_tensor(self.applied), self.iterations.dtype)
        self.iterations.assign_sub(skipped)

    def apply_packed(self, gradients: tf.Tensor) -> None:
        """Like `apply`, for gradients packed into one float32 vector, with one XLA program per
        replica.

        Every replica must call it, with the sum over replicas.
        """
        context = tf.distribute.get_replica_context()
        context.merge_call(self._update_packed, args=(gradients,))
        applied = tf.convert_to_tensor(self.applied)
        self.iterations.assign_add(tf.cast(applied, self.iterations.dtype))

    def _update_packed(self, strategy: tf.distribute.Strategy, gradients: tf.Tensor) -> None:
        variables = [variable.value for variable in self._trainable_variables]
        sizes = [math.prod(variable.shape) for variable in variables]

        def update(_: tf.Variable, gradients: tf.Tensor) -> None:
            # `strategy.extended.update` makes `variables` those of the replica that is updated, so
            # each replica needs a function of its own.
            @tf.function(autograph=False, jit_compile=True)
            def update_all(gradients: tf.Tensor) -> None:
                scalars = self._scalars()
                parts = zip(variables, tf.split(gradients, sizes), strict=True)
                for index, (variable, part) in enumerate(parts):
                    gradient = tf.reshape(part, variable.shape)
                    self.update_variable(variable, index, gradient, scalars)

            update_all(gradients)

        strategy.extended.update(self.gradient_factor, update, args=(gradients,), group=False)

    def update_variable(
        self, variable: tf.Variable, index: int, gradient: tf.Tensor, scalars: StepScalars
    ) -> None:
        """Update one variable and its moments; traced into a graph on the variable's device.

        Args:
            variable: the variable on this replica.
            index: its number among the variables that the optimizer was built on.
            gradient: gradient in the variable's shape, not yet `scaled`.
            scalars: numbers of this step.
        """
        raise NotImplementedError

    def rate(self, index: int, scalars: StepScalars) -> tf.Tensor:
        """Return the learning rate of a variable, float32 []."""
        factor = self._rate_factors[index]
        return scalars.learning_rate if factor == 1.0 else scalars.learning_rate * factor

    def _distributed_tf_update_step(
        self, distribution: Any, grads_and_vars: Any, learning_rate: Any
    ) -> None:
        scalars = self._scalars()

        def update(variable: tf.Variable, gradient: tf.Tensor) -> None:
            index = self._get_variable_index(variable)
            self.update_variable(variable, index, gradient, scalars)

        for gradient, variable in grads_and_vars:
            distribution.extended.update(variable, update, args=(gradient,), group=False)

    def _scalars(self) -> StepScalars:
        applied = tf.convert_to_tensor(self.applied)
        return StepScalars(
            learning_rate=tf.cast(tf.convert_to_tensor(self.learning_rate), tf.float32),
            gradient_factor=tf.convert_to_tensor(self.gradient_factor),
            beta_1=1.0 - (1.0 - self.beta_1) * applied,
            beta_2=1.0 - (1.0 - self.beta_2) * applied,
            beta_1_power=self._power(self.beta_1),
            beta_2_power=self._power(self.beta_2),
        )

    def _power(self, beta: float) -> tf.Tensor:
        if not self.bias_correction:
            return tf.constant(0.0)
        step = tf.cast(tf.convert_to_tensor(self.iterations) + 1, tf.float32)
        return tf.pow(tf.constant(beta), step)

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        return grads_and_vars


def _scalar_variable() -> tf.Variable:
    aggregation = tf.VariableAggregation.ONLY_FIRST_REPLICA
    return tf.Variable(1.0, trainable=False, aggregation=aggregation)


def scaled(gradient: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    """Return gradient x factor; 0 if the factor is 0, even for a gradient that is not finite."""
    return tf.math.multiply_no_nan(gradient, factor)


def decays(variable: keras.Variable) -> bool:
    """Return whether weight decay applies to a variable: not to biases and layer norms.

    Both are recognized by name, like in google-research/bert: a bias ends with `bias`, a layer
    norm's variables are `gamma` and `beta`.
    """
    return not variable.name.endswith("bias") and variable.name not in ("gamma", "beta")


class AdamW(StepOptimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); see `StepOptimizer`.

    Like in the paper's Algorithm 2, and in PyTorch, epsilon is added to the root of the second
    moment after the correction of its bias. `keras.optimizers.AdamW` adds it before, which is the
    same as an epsilon 32 times as large in the first step and 3 times after 100: BERT's gradients
    are small enough for that to slow training down. Without bias correction it is the optimizer of
    google-research/bert (`optimization.py`).

    Attributes:
        in_place: updates the large variables on CPUs, from gradients in a form of its own; None
            elsewhere. Contains the indices of its variables.
    """

    def __init__(self, **arguments: Any):
        super().__init__(name="adamw", **arguments)
        self.in_place: InPlaceAdamW | None = None

    def update_in_place(self, copies: dict[int, tf.Variable]) -> InPlaceAdamW:
        """Update large variables by `bert_tf.cpu.adamw` from now on.

        Args:
            copies: bfloat16 copies of variables, by the index of the variable, which each update
                refreshes.
        """
        from bert_tf.cpu.adamw import InPlaceAdamW

        self.in_place = InPlaceAdamW(
            self._trainable_variables, self._momentums, self._velocities, copies
        )
        return self.in_place

    def update_variable(
        self, variable: tf.Variable, index: int, gradient: Gradient, scalars: StepScalars
    ) -> None:
        rate = self.rate(index, scalars)
        decay = self.decay * rate if self.decay and self._decays[index] else None
        # Both kernels add epsilon to the root of the uncorrected second moment. Scaled by the
        # correction, it is the epsilon of the corrected one.
        correction = tf.sqrt(1.0 - scalars.beta_2_power)
        epsilon = self.epsilon * correction
        if self.in_place is not None and index in self.in_place:
            corrected_rate = rate * correction / (1.0 - scalars.beta_1_power)
            numbers = tf.stack(
                [
                    scalars.gradient_factor,
                    0.0 if decay is None else decay,
                    scalars.beta_1,
                    scalars.beta_2,
                    corrected_rate,
                    epsilon,
                ]
            )
            self.in_place.update(index, gradient, numbers)
            return
        if decay is not None:
            variable.assign_sub(variable * decay)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=scalars.beta_1_power,
            beta2_power=scalars.beta_2_power,
            lr=rate,
            beta1=scalars.beta_1,
            beta2=scalars.beta_2,
            epsilon=epsilon,
            grad=scaled(gradient, scalars.gradient_factor),
        )


class _MatrixOptimizer(StepOptimizer):
    """Adam's moments, for updates that are scaled by a number per matrix."""

    def build(self, variables: list[keras.Variable]) -> None:
        super().build(variables)
        self._matrices = joined_matrices(variables)

    def _adam_update(
        self, variable: tf.Variable, index: int, gradient: tf.Tensor, scalars: StepScalars
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Update both moments of a variable, without their bias to 0.

        Args:
            variable: the weights.
            index: number of the variable.
            gradient: scaled by the factor of the step.
            scalars: numbers of the step.

        Returns:
            AdamW's update, weight decay included, before the learning rate; and the second moment.
        """
        m = self._momentums[index].value
        v = self._velocities[index].value
        momentum = m.assign(scalars.beta_1 * m + (1.0 - scalars.beta_1) * gradient)
        velocity = v.assign(scalars.beta_2 * v + (1.0 - scalars.beta_2) * tf.square(gradient))
        first = momentum / (1.0 - scalars.beta_1_power)
        second = velocity / (1.0 - scalars.beta_2_power)
        update = first / (tf.sqrt(second) + self.epsilon)
        if self.decay and self._decays[index]:
            update = update + self.decay * variable
        return update, second


class Lamb(_MatrixOptimizer):
    """LAMB (You et al. 2020, arXiv 1904.00962, Algorithm 2); see `StepOptimizer`.

    Like in the paper, weight decay is part of the update whose norm the trust ratio divides by;
    `keras.optimizers.Lamb` decays outside of it and equals this one only without decay. Like in TF
    Model Garden and NVIDIA's recipe, biases and layer norms neither decay nor have a trust ratio.
    Queries, keys and values share one variable here, and have a ratio each, like in models that
    keep them apart.
    """

    def __init__(self, **arguments: Any):
        super().__init__(name="lamb", **arguments)

    def update_variable(
        self, variable: tf.Variable, index: int, gradient: tf.Tensor, scalars: StepScalars
    ) -> None:
        gradient = scaled(gradient, scalars.gradient_factor)
        update, _ = self._adam_update(variable, index, gradient, scalars)
        if self._decays[index]:
            update = update * _trust_ratio(variable, update, self._matrices[index])
        variable.assign_sub(self.rate(index, scalars) * update)


class StableAdamW(_MatrixOptimizer):
    """AdamW whose update is scaled down where gradients outgrow the second moment.

    StableAdamW of Wortsman et al. 2023 ("Stable and low-precision training for large-scale
    vision-language models", arXiv 2304.13013, Algorithm 2): the learning rate of a matrix is
    divided by max(1, RMS), where RMS is the root of the mean of gradient squared / second moment.
    It is 1 in a steady state, and above after a jump of the gradients, which the second moment
    follows slowly: then AdamW makes its too large steps. It takes the place of gradient clipping,
    so `gradient_clip_norm` can be 0. Queries, keys and values are a matrix each, as in `Lamb`.
    """

    def __init__(self, **arguments: Any):
        super().__init__(name="stable_adamw", **arguments)

    def update_variable(
        self, variable: tf.Variable, index: int, gradient: tf.Tensor, scalars: StepScalars
    ) -> None:
        gradient = scaled(gradient, scalars.gradient_factor)
        update, second = self._adam_update(variable, index, gradient, scalars)
        outgrown = gradient * tf.math.rsqrt(tf.maximum(second, self.epsilon**2))
        matrices = self._matrices[index]
        # The root of the mean is the norm by the root of the number of elements.
        norms = _norms(outgrown, matrices)
        ratio = tf.maximum(norms / math.sqrt(math.prod(variable.shape) / matrices), 1.0)
        if matrices > 1:
            ratio = tf.repeat(ratio, variable.shape[-1] // matrices)
        variable.assign_sub(self.rate(index, scalars) * update / ratio)


def joined_matrices(variables: Sequence[keras.Variable]) -> tuple[int, ...]:
    """Return how many matrices of the paper's model each variable joins along its last axis."""
    return tuple(
        3 if variable.path.endswith("query_key_value/kernel") else 1 for variable in variables
    )


def _trust_ratio(variable: tf.Tensor, update: tf.Tensor, matrices: int) -> tf.Tensor:
    """Return |variable| / |update| of each matrix, 1 where either is 0.

    Returns:
        [] for one matrix; else [columns], each ratio repeated over the columns of its matrix, so
        that it broadcasts over `variable`.
    """
    weight_norm = _norms(variable, matrices)
    update_norm = _norms(update, matrices)
    ratio = tf.where(
        (weight_norm > 0.0) & (update_norm > 0.0),
        tf.math.divide_no_nan(weight_norm, update_norm),
        1.0,
    )
    return tf.repeat(ratio, variable.shape[-1] // matrices) if matrices > 1 else ratio


def _norms(values: tf.Tensor, matrices: int) -> tf.Tensor:
    """Return Euclidean norms: [] of the whole, or [matrices] of equal parts of the last axis."""
    if matrices == 1:
        return tf.norm(values)
    rows, columns = values.shape
    return tf.norm(tf.reshape(values, [rows, matrices, columns // matrices]), axis=[0, 2])


_OPTIMIZERS: dict[str, type[AdamW] | type[Lamb] | type[StableAdamW]] = {
    "adamw": AdamW,
    "lamb": Lamb,
    "stableadamw": StableAdamW,
}


def make_optimizer(config: LoopSection, *, num_hidden_layers: int) -> StepOptimizer:
    """Return the optimizer of a run; the training loop sets its learning rate at every step.

    Args:
        config: config of the run.
        num_hidden_layers: transformer blocks of the model, for `layer_decay`.
    """
    return _OPTIMIZERS[config.optimizer](
        beta_1=config.adam_beta_1,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        weight_decay=config.weight_decay,
        bias_correction=config.adam_bias_correction,
        rate_factor=layer_rate_factor(config.layer_decay, num_hidden_layers),
    )


def layer_rate_factor(layer_decay: float, num_hidden_layers: int) -> RateFactor:
    """Return factors on the learning rate that fall from the head to the embeddings.

    Like BEiT's `optim_factory.py` (after ELECTRA's layer-wise decay): with n blocks, heads and the
    pooler have factor 1, block i (from 0) has layer_decay ** (n - i), the embeddings have
    layer_decay ** (n + 1). The output matrix of a masked-LM head is the word embeddings.
    """

    def factor(variable: keras.Variable) -> float:
        if "/embeddings/" in variable.path:
            depth = 0
        else:
            block = _BLOCK.search(variable.path)
            depth = int(block[1]) + 1 if block else num_hidden_layers + 1
        return layer_decay ** (num_hidden_layers + 1 - depth)

    return factor
