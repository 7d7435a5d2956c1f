"""The optimizers of the training step: AdamW and LAMB as BERT uses them."""

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

RateFactor = Callable[[keras.Variable], float]
_BLOCK = re.compile(r"/block_(\d+)/")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepScalars:
    """Numbers of one step for all variables, float32 [] each.

    Attributes:
        learning_rate: 0 for a skipped step.
        gradient_factor: multiplies gradients first; 0 for a skipped step.
        beta_1, beta_2: decay of the moments; 1 for a skipped step.
        beta_1_power, beta_2_power: decay ** step number, from 1; 0 without bias correction.
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
    - gradients arrive already summed over replicas (the step clips by the global norm, which
      needs the sum first), so `apply` does not sum them again;
    - `prepare_step` decides whether `apply` changes anything, whatever the gradients are; that
      skips a step whose gradients are not finite without a conditional (those break under
      MirroredStrategy);
    - `prepare_step` takes the factor that clips the gradients, for one pass over memory;
    - `rate_factor` multiplies a variable's learning rate, weight decay included.
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
        # Not one of the optimizer's variables, hence not saved: a restored run starts with 1.
        self.applied, self.gradient_factor = (
            tf.Variable(1.0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
            for _ in range(2)
        )
        super().build(variables)
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
        """Sets up the next `apply`, float32 []; `applied` 0 leaves all variables unchanged."""
        self.applied.assign(applied)
        self.gradient_factor.assign(tf.where(applied > 0, gradient_factor, 0.0))
        self.learning_rate.assign(learning_rate * applied)

    def apply(self, grads: Sequence[tf.Tensor], trainable_variables: Any = None) -> None:
        super().apply(grads, trainable_variables)
        skipped = 1 - tf.cast(tf.convert_to_tensor(self.applied), self.iterations.dtype)
        self.iterations.assign_sub(skipped)

    def apply_packed(self, gradients: tf.Tensor) -> None:
        """As `apply`, of all gradients in one float32 vector; XLA compiles it for each replica.

        Every replica calls it, with the sum over replicas.
        """
        context = tf.distribute.get_replica_context()
        context.merge_call(self._update_packed, args=(gradients,))
        applied = tf.convert_to_tensor(self.applied)
        self.iterations.assign_add(tf.cast(applied, self.iterations.dtype))

    def _update_packed(self, strategy: tf.distribute.Strategy, gradients: tf.Tensor) -> None:
        variables = [variable.value for variable in self._trainable_variables]
        sizes = [math.prod(variable.shape) for variable in variables]

        def update(_: tf.Variable, gradients: tf.Tensor) -> None:
            # Variables are those of the replica that is updated: one function for each.
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
        """Updates one variable, by `index`, and its moments; the gradient is not `scaled` yet."""
        raise NotImplementedError

    def rate(self, index: int, scalars: StepScalars) -> tf.Tensor:
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
        step = tf.cast(tf.convert_to_tensor(self.iterations) + 1, tf.float32)
        powers = [
            tf.pow(beta, step) if self.bias_correction else tf.constant(0.0)
            for beta in (tf.constant(self.beta_1), tf.constant(self.beta_2))
        ]
        return StepScalars(
            learning_rate=tf.cast(tf.convert_to_tensor(self.learning_rate), tf.float32),
            gradient_factor=tf.convert_to_tensor(self.gradient_factor),
            beta_1=1.0 - (1.0 - self.beta_1) * applied,
            beta_2=1.0 - (1.0 - self.beta_2) * applied,
            beta_1_power=powers[0],
            beta_2_power=powers[1],
        )

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        return grads_and_vars


def scaled(gradient: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    """Their product, 0 where the factor is, even for a gradient that is not finite."""
    return tf.math.multiply_no_nan(gradient, factor)


def decays(variable: keras.Variable) -> bool:
    """Whether weight decay applies: not to biases and layer norms, known by their names."""
    return not variable.name.endswith("bias") and variable.name not in ("gamma", "beta")


class AdamW(StepOptimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); see `StepOptimizer`.

    As in the paper's Algorithm 2, and in PyTorch, epsilon is added to the root of the second moment
    after the correction of its bias. `keras.optimizers.AdamW` adds it before, which is the same as
    an epsilon 32 times as large in the first step and 3 times after 100: BERT's gradients are small
    enough for that to slow training down. Without bias correction it is the optimizer of
    google-research/bert (`optimization.py`).

    Attributes:
        in_place: updates the variables that it contains, from gradients of its own form, if any.
    """

    def __init__(self, **arguments: Any):
        super().__init__(name="adamw", **arguments)
        self.in_place: InPlaceAdamW | None = None

    def update_in_place(self, copies: dict[int, tf.Variable]) -> InPlaceAdamW:
        """Updates large variables by `bert_tf.cpu.adamw` from now on; `copies` are by number."""
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
        correction = tf.sqrt(1.0 - scalars.beta_2_power)
        # Of the second moment before the correction of its bias.
        epsilon = self.epsilon * correction
        if self.in_place is not None and index in self.in_place:
            corrected = rate * correction / (1.0 - scalars.beta_1_power)
            factors = (scalars.gradient_factor, 0.0 if decay is None else decay)
            numbers = (*factors, scalars.beta_1, scalars.beta_2, corrected, epsilon)
            self.in_place.update(index, gradient, tf.stack(numbers))
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


class Lamb(StepOptimizer):
    """LAMB (You et al. 2020, arXiv 1904.00962, Algorithm 2); see `StepOptimizer`.

    As in the paper weight decay is part of the update whose norm the trust ratio divides by;
    `keras.optimizers.Lamb` decays outside of it and equals this one only without decay. As in TF
    Model Garden and NVIDIA's recipe, biases and layer norms neither decay nor have a trust ratio.
    Queries, keys and values, one variable here, have a ratio each.
    """

    def __init__(self, **arguments: Any):
        super().__init__(name="lamb", **arguments)

    def build(self, variables: list[keras.Variable]) -> None:
        super().build(variables)
        # Matrices of the paper's model that a variable joins along its last axis.
        self._matrices = tuple(
            3 if variable.path.endswith("query_key_value/kernel") else 1 for variable in variables
        )

    def update_variable(
        self, variable: tf.Variable, index: int, gradient: tf.Tensor, scalars: StepScalars
    ) -> None:
        gradient = scaled(gradient, scalars.gradient_factor)
        m, v = self._momentums[index].value, self._velocities[index].value
        momentum = m.assign(scalars.beta_1 * m + (1.0 - scalars.beta_1) * gradient)
        velocity = v.assign(scalars.beta_2 * v + (1.0 - scalars.beta_2) * tf.square(gradient))
        update = (momentum / (1.0 - scalars.beta_1_power)) / (
            tf.sqrt(velocity / (1.0 - scalars.beta_2_power)) + self.epsilon
        )
        if self._decays[index]:
            update = update + self.decay * variable
            update = update * _trust_ratio(variable, update, self._matrices[index])
        variable.assign_sub(self.rate(index, scalars) * update)


def _trust_ratio(variable: tf.Tensor, update: tf.Tensor, matrices: int) -> tf.Tensor:
    """|variable| / |update| of each matrix, 1 where either is 0; as broadcast over `variable`."""
    norms = [_norms(values, matrices) for values in (variable, update)]
    ratio = tf.where(
        (norms[0] > 0.0) & (norms[1] > 0.0), tf.math.divide_no_nan(norms[0], norms[1]), 1.0
    )
    return tf.repeat(ratio, variable.shape[-1] // matrices) if matrices > 1 else ratio


def _norms(values: tf.Tensor, matrices: int) -> tf.Tensor:
    """Euclidean norms: [] of the whole, or [matrices] of equal runs of the last axis."""
    if matrices == 1:
        return tf.norm(values)
    rows, columns = values.shape
    return tf.norm(tf.reshape(values, [rows, matrices, columns // matrices]), axis=[0, 2])


_OPTIMIZERS: dict[str, type[AdamW] | type[Lamb]] = {"adamw": AdamW, "lamb": Lamb}


def make_optimizer(config: LoopSection, *, num_hidden_layers: int) -> StepOptimizer:
    return _OPTIMIZERS[config.optimizer](
        beta_1=config.adam_beta_1,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        weight_decay=config.weight_decay,
        bias_correction=config.adam_bias_correction,
        rate_factor=layer_rate_factor(config.layer_decay, num_hidden_layers),
    )


def layer_rate_factor(layer_decay: float, num_hidden_layers: int) -> RateFactor:
    """Factors on the learning rate that fall from the head to the embeddings.

    As BEiT's `optim_factory.py` (after ELECTRA's layer-wise decay): with n blocks, heads and the
    pooler have factor 1, block i (from 0) has layer_decay ** (n - i), the embeddings have
    layer_decay ** (n + 1). A masked-LM head's output matrix is the word embeddings.
    """

    def factor(variable: keras.Variable) -> float:
        if "/embeddings/" in variable.path:
            depth = 0
        else:
            block = _BLOCK.search(variable.path)
            depth = int(block[1]) + 1 if block else num_hidden_layers + 1
        return layer_decay ** (num_hidden_layers + 1 - depth)

    return factor
