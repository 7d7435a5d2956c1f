"""LAMB, for large batches."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from bert_tf.training.optimizers.base import StepOptimizer, StepScalars, scaled


class Lamb(StepOptimizer):
    """LAMB (You et al. 2020, arXiv 1904.00962, Algorithm 2); see `StepOptimizer`.

    As in the paper weight decay is part of the update whose norm the trust ratio divides by;
    `keras.optimizers.Lamb` decays outside of it and equals this one only without decay. As in TF
    Model Garden and NVIDIA's recipe, biases and layer norms neither decay nor have a trust ratio.
    Queries, keys and values, which share a variable here, have a ratio each, as in models that
    keep them apart.
    """

    def __init__(self, **arguments: Any):
        super().__init__(name="lamb", **arguments)

    def build(self, variables: list[keras.Variable]) -> None:
        super().build(variables)
        self._matrices = tuple(_matrices_in(variable) for variable in variables)

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


def _matrices_in(variable: keras.Variable) -> int:
    """How many matrices of the paper's model a variable joins along its last axis."""
    return 3 if variable.path.endswith("query_key_value/kernel") else 1
