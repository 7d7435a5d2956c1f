"""AdamW as BERT uses it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.training.optimizers.base import StepOptimizer, StepScalars


class AdamW(StepOptimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); see `StepOptimizer`.

    The updates are those of `keras.optimizers.AdamW`, computed by TensorFlow's fused kernel: one
    pass over memory instead of ten. Without bias correction it is the optimizer of
    google-research/bert (`optimization.py`).
    """

    def __init__(self, **arguments: Any):
        super().__init__(name="adamw", **arguments)

    def update_variable(
        self, variable: tf.Variable, index: int, gradient: tf.Tensor, scalars: StepScalars
    ) -> None:
        """See `StepOptimizer.update_variable`."""
        rate = self.rate(index, scalars)
        if self.decay and self._decays[index]:
            variable.assign_sub(variable * (self.decay * rate))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=scalars.beta_1_power,
            beta2_power=scalars.beta_2_power,
            lr=rate,
            beta1=scalars.beta_1,
            beta2=scalars.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )
