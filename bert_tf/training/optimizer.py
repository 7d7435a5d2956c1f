"""AdamW as BERT uses it, on Keras' optimizer."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from bert_tf.config.sections.training import LoopSection


class AdamW(keras.optimizers.AdamW):
    """Keras' AdamW (Loshchilov & Hutter 2019) for our training step.

    Differences from the base class:
    - gradients arrive already summed over replicas (the step clips by the global norm, which
      needs the sum first), so `apply` does not sum them again;
    - the update of a variable is TensorFlow's fused kernel, one pass over memory instead of ten;
    - `admit` decides whether `apply` changes anything, which skips a step with gradients that are
      not finite without a conditional (those break under MirroredStrategy);
    - the bias correction can be left out, as in google-research/bert `optimization.py`.

    Args:
        beta_1, beta_2, epsilon, weight_decay: as Keras names them.
        bias_correction: False for the optimizer of the original BERT.
    """

    def __init__(
        self,
        *,
        beta_1: float,
        beta_2: float,
        epsilon: float,
        weight_decay: float,
        bias_correction: bool = True,
    ):
        super().__init__(
            learning_rate=0.0,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            weight_decay=weight_decay,
            name="adamw",
        )
        self.bias_correction = bias_correction

    def build(self, variables: list[keras.Variable]) -> None:
        """Makes the moments, and excludes biases and layer norms from weight decay."""
        self.exclude_from_weight_decay(
            var_list=[variable for variable in variables if not decays(variable)]
        )
        self.admitted = self.add_variable(
            shape=(), initializer="ones", aggregation="only_first_replica", name="admitted"
        )
        super().build(variables)

    def admit(self, admitted: tf.Tensor, learning_rate: tf.Tensor) -> None:
        """Sets what the next `apply` does.

        Args:
            admitted: float32 [], 1 to update, 0 to leave weights and moments as they are.
            learning_rate: float32 [].
        """
        self.admitted.assign(admitted)
        self.learning_rate.assign(learning_rate * admitted)

    def update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        """Updates one variable and its moments with the fused Adam kernel."""
        index = self._get_variable_index(variable)
        momentum, velocity = self._momentums[index].value, self._velocities[index].value
        admitted = tf.convert_to_tensor(self.admitted)
        step = tf.cast(self.iterations + 1, tf.float32)
        powers = [
            tf.pow(beta, step) if self.bias_correction else tf.constant(0.0)
            for beta in (tf.constant(self.beta_1), tf.constant(self.beta_2))
        ]
        gradient = tf.convert_to_tensor(gradient)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=momentum.handle,
            v=velocity.handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=tf.cast(learning_rate, tf.float32),
            beta1=1.0 - (1.0 - self.beta_1) * admitted,
            beta2=1.0 - (1.0 - self.beta_2) * admitted,
            epsilon=self.epsilon,
            grad=tf.where(admitted > 0, gradient, tf.zeros_like(gradient)),
        )

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        return grads_and_vars


def decays(variable: keras.Variable) -> bool:
    """Whether weight decay applies: not to biases, nor to a layer norm's scale and shift.

    Both are known by name, as in google-research/bert: a bias is called `bias` or `…_bias`, a layer
    norm's variables `gamma` and `beta`.
    """
    return not variable.name.endswith("bias") and variable.name not in ("gamma", "beta")


def make_optimizer(config: LoopSection) -> AdamW:
    """The optimizer of a run; the loop sets its learning rate at every step."""
    return AdamW(
        beta_1=config.adam_beta_1,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        weight_decay=config.weight_decay,
        bias_correction=config.adam_bias_correction,
    )
