"""The base class of the optimizers of our training step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

RateFactor = Callable[[keras.Variable], float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepScalars:
    """What one step uses for every variable, float32 [] each.

    Attributes:
        learning_rate: 0 for a skipped step.
        gradient_factor: what gradients are multiplied with first; 0 for a skipped step.
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
    - `prepare_step` takes the factor that clips the gradients, so that an update may multiply by it
      in the same pass over memory;
    - a variable may have a factor of its own on the learning rate, weight decay included;
    - what is the same for all variables is computed once per step.

    Args:
        name: of the optimizer.
        beta_1, beta_2, epsilon, weight_decay: as Keras names them.
        bias_correction: False leaves it out.
        rate_factor: a variable's factor on the learning rate; None for 1 everywhere.
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
        """Makes the moments."""
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
        self,
        applied: tf.Tensor,
        learning_rate: tf.Tensor,
        gradient_factor: tf.Tensor | float = 1.0,
    ) -> None:
        """Sets what the next `apply` does.

        Args:
            applied: float32 [], 1 to apply the step, 0 to leave weights, moments and the number of
                iterations as they are.
            learning_rate: float32 [].
            gradient_factor: float32 [], what `apply` multiplies gradients with.
        """
        self.applied.assign(applied)
        self.gradient_factor.assign(tf.where(applied > 0, gradient_factor, 0.0))
        self.learning_rate.assign(learning_rate * applied)

    def apply(self, grads: Sequence[tf.Tensor], trainable_variables: Any = None) -> None:
        """Applies the step or skips it, as `prepare_step` has set."""
        super().apply(grads, trainable_variables)
        skipped = 1 - tf.cast(tf.convert_to_tensor(self.applied), self.iterations.dtype)
        self.iterations.assign_sub(skipped)

    def update_variable(
        self, variable: tf.Variable, index: int, gradient: tf.Tensor, scalars: StepScalars
    ) -> None:
        """Updates one variable and its moments.

        Traced into a graph, on the variable's device.

        Args:
            variable: on this replica.
            index: its number among the variables that the optimizer was built on.
            gradient: of the variable's shape, to be scaled as by `scaled`.
            scalars: of this step.
        """
        raise NotImplementedError

    def rate(self, index: int, scalars: StepScalars) -> tf.Tensor:
        """The learning rate of a variable, float32 []."""
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
    """Their product, which is 0 where the factor is, even for a gradient that is not finite."""
    return tf.math.multiply_no_nan(gradient, factor)


def decays(variable: keras.Variable) -> bool:
    """Whether weight decay applies: not to biases, nor to a layer norm's scale and shift.

    Both are known by name, as in google-research/bert: a bias is called `bias` or `…_bias`, a layer
    norm's variables `gamma` and `beta`.
    """
    return not variable.name.endswith("bias") and variable.name not in ("gamma", "beta")
