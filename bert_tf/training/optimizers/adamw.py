"""AdamW as BERT uses it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.cpu.gradients import Gradient, summed
from bert_tf.cpu.kernels.adamw import (
    adamw_entry,
    adamw_table_entry,
    copying_adamw_entry,
    find_moments_entry,
)
from bert_tf.cpu.kernels.operation import in_place, kind_of
from bert_tf.training.optimizers.base import StepOptimizer, StepScalars, scaled


class AdamW(StepOptimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); see `StepOptimizer`.

    As in the paper's Algorithm 2, and in PyTorch, epsilon is added to the root of the second moment
    after the correction of its bias. `keras.optimizers.AdamW` adds it before, which is the same as
    an epsilon 32 times as large in the first step and 3 times after 100: BERT's gradients are small
    enough for that to slow training down. Without bias correction it is the optimizer of
    google-research/bert (`optimization.py`).

    On processors, where memory limits it, the update of a large variable in place is one pass over
    weights, moments, gradient and the copy in the dtype of products. Of a table whose gradient is
    given as rows, it leaves out the moments of rows that never had a gradient, which are 0.
    Elsewhere, and for small variables, it is TensorFlow's kernel.
    """

    has_kernel = True

    def __init__(self, **arguments: Any):
        super().__init__(name="adamw", **arguments)
        # By the number of a variable, bool [rows]. Not saved: `take_memory` finds them.
        self._has_moments: dict[int, tf.Variable] = {}

    def update_in_place(self, copies: dict[int, tf.Variable]) -> None:
        super().update_in_place(copies)
        self._has_moments = {
            index: tf.Variable(tf.zeros(variable.shape[0], tf.bool), trainable=False)
            for index, variable in enumerate(self._trainable_variables)
            if self.takes_rows(index)
        }

    def takes_rows(self, index: int) -> bool:
        rank = len(self._trainable_variables[index].shape)
        return self.is_in_place(index) and rank == 2 and index not in self.copies

    def take_memory(self) -> None:
        super().take_memory()
        for index, has_moments in self._has_moments.items():
            moments = self._momentums[index].value, self._velocities[index].value
            in_place(find_moments_entry(), moments, [has_moments], row_axes=1)

    def update_variable(
        self, variable: tf.Variable, index: int, gradient: Gradient, scalars: StepScalars
    ) -> None:
        rate = self.rate(index, scalars)
        decay = self.decay * rate if self.decay and self._decays[index] else None
        m, v = self._momentums[index].value, self._velocities[index].value
        correction = tf.sqrt(1.0 - scalars.beta_2_power)
        # Of the second moment before the correction of its bias.
        epsilon = self.epsilon * correction
        if self.is_in_place(index):
            numbers = (
                scalars.gradient_factor,
                0.0 if decay is None else decay,
                scalars.beta_1,
                scalars.beta_2,
                rate * correction / (1.0 - scalars.beta_1_power),
                epsilon,
            )
            if isinstance(gradient, tf.IndexedSlices):
                self._update_table(variable, index, gradient, tf.stack(numbers))
                return
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
            epsilon=epsilon,
            grad=scaled(summed(gradient), scalars.gradient_factor),
        )

    def _update_table(
        self, variable: tf.Variable, index: int, gradient: tf.IndexedSlices, numbers: tf.Tensor
    ) -> None:
        number = tf.size(gradient.indices)
        places = tf.tensor_scatter_nd_update(
            tf.fill([variable.shape[0]], -1), gradient.indices[:, None], tf.range(number)
        )
        arguments = [places, gradient.values, numbers]
        moments = self._momentums[index].value, self._velocities[index].value
        in_place(
            adamw_table_entry(),
            arguments,
            [variable, *moments, self._has_moments[index]],
            row_axes=1,
            divided=len(arguments),
        )
