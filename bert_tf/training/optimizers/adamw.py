"""AdamW as BERT uses it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.layers.kernels.graph import kind_of
from bert_tf.layers.kernels.operation import in_place
from bert_tf.training.optimizers.base import StepOptimizer, StepScalars, scaled
from bert_tf.training.optimizers.gradients import Gradient, summed
from bert_tf.training.optimizers.one_pass import adamw_entry, copying_adamw_entry


class AdamW(StepOptimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); see `StepOptimizer`.

    The updates are those of `keras.optimizers.AdamW`. Without bias correction it is the optimizer
    of google-research/bert (`optimization.py`).

    On processors, where memory limits it, the update of a large variable in place is one pass over
    weights, moments, gradient and the copy in the dtype of products. Elsewhere, and for small
    variables, it is TensorFlow's kernel.
    """

    has_kernel = True

    def __init__(self, **arguments: Any):
        super().__init__(name="adamw", **arguments)

    def update_variable(
        self, variable: tf.Variable, index: int, gradient: Gradient, scalars: StepScalars
    ) -> None:
        """See `StepOptimizer.update_variable`."""
        rate = self.rate(index, scalars)
        decay = self.decay * rate if self.decay and self._decays[index] else None
        m, v = self._momentums[index].value, self._velocities[index].value
        if self.is_in_place(index):
            corrected = rate * tf.sqrt(1.0 - scalars.beta_2_power) / (1.0 - scalars.beta_1_power)
            numbers = (
                scalars.gradient_factor,
                0.0 if decay is None else decay,
                scalars.beta_1,
                scalars.beta_2,
                corrected,
                self.epsilon,
            )
            copies = [self.copies[index]] if index in self.copies else []
            first, second = gradient if isinstance(gradient, tuple) else (gradient, tf.zeros([0]))
            entry = (copying_adamw_entry if copies else adamw_entry)(kind_of(first))
            arguments = [first, second, tf.stack(numbers)]
            in_place(entry, arguments, [variable, m, v, *copies], row_axes=0)
            return
        if decay is not None:
            variable.assign_sub(variable * decay)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=scalars.beta_1_power,
            beta2_power=scalars.beta_2_power,
            lr=rate,
            beta1=scalars.beta_1,
            beta2=scalars.beta_2,
            epsilon=self.epsilon,
            grad=scaled(summed(gradient), scalars.gradient_factor),
        )
