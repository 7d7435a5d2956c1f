"""AdamW as BERT uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from bert_tf.training.optimizers.base import StepOptimizer, StepScalars, scaled

if TYPE_CHECKING:
    from bert_tf.cpu.adamw import Gradient, InPlaceAdamW


class AdamW(StepOptimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); see `StepOptimizer`.

    As in the paper's Algorithm 2, and in PyTorch, epsilon is added to the root of the second moment
    after the correction of its bias. `keras.optimizers.AdamW` adds it before, which is the same as
    an epsilon 32 times as large in the first step and 3 times after 100: BERT's gradients are small
    enough for that to slow training down. Without bias correction it is the optimizer of
    google-research/bert (`optimization.py`).

    Attributes:
        in_place: updates the variables that it contains, from gradients of its own form; None for
            none.
    """

    def __init__(self, **arguments: Any):
        super().__init__(name="adamw", **arguments)
        self.in_place: InPlaceAdamW | None = None

    def update_in_place(self, copies: dict[int, tf.Variable]) -> InPlaceAdamW:
        """Updates large variables by `bert_tf.cpu.adamw` from now on.

        Args:
            copies: by the number of a variable, its copy in another dtype.
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
        correction = tf.sqrt(1.0 - scalars.beta_2_power)
        # Of the second moment before the correction of its bias.
        epsilon = self.epsilon * correction
        if self.in_place is not None and index in self.in_place:
            numbers = (
                scalars.gradient_factor,
                0.0 if decay is None else decay,
                scalars.beta_1,
                scalars.beta_2,
                rate * correction / (1.0 - scalars.beta_1_power),
                epsilon,
            )
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
