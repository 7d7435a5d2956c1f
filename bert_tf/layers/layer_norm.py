"""Layer normalization."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="bert_tf")
class LayerNorm(keras.layers.Layer):
    """Normalizes the last axis to mean 0 and variance 1, then scales and shifts (Ba et al. 2016).

    Statistics are float32 (float64 under that policy), and the mean is subtracted before anything
    is multiplied: Keras' layer adds up two large terms instead, which loses a digit where a token
    has outlying features.

    Args:
        epsilon: added to the variance.
    """

    def __init__(self, *, epsilon: float, **kwargs: Any):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones", autocast=False)
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros", autocast=False)

    def call(self, inputs: Any) -> Any:
        """Maps a float tensor to the same shape, in the compute dtype."""
        centered = ops.cast(inputs, self.variable_dtype)
        centered = centered - ops.mean(centered, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
        normalized = centered * ops.rsqrt(variance + self.epsilon)
        return ops.cast(normalized * self.gamma + self.beta, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon}
