"""Layer normalization."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from bert_tf.layers.activation import at_least_float32, custom_gradient
from bert_tf.layers.dropout import StatelessDropout, dropped


@keras.saving.register_keras_serializable(package="bert_tf")
class LayerNorm(keras.layers.Layer):
    """Normalizes the last axis to mean 0 and variance 1, then scales and shifts (Ba et al. 2016).

    Statistics are float32 (float64 under that policy). The mean is subtracted before squaring:
    Keras' layer subtracts two large terms instead, which loses a digit if a token has outlying
    features.

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
        return self._normalized(inputs)

    def of_sum(self, hidden: Any, change: Any, dropout: StatelessDropout, key: Any | None) -> Any:
        """Normalize `hidden` plus `change` after dropout, rounding only the result.

        Args:
            hidden, change: float of one shape, in the compute dtype.
            dropout: dropout of `change`.
            key: int32 [2]; None for no dropout.
        """
        keep = dropout.kept(change, key)
        change = dropped(at_least_float32(change), keep, dropout.rate)
        return self._normalized(at_least_float32(hidden) + change)

    def _normalized(self, inputs: Any) -> Any:
        # Weights become tensors, because custom gradients accept no variables on TensorFlow.
        gamma = ops.reshape(self.gamma, (-1,))
        beta = ops.reshape(self.beta, (-1,))
        normalize = _normalization(self.epsilon, self.variable_dtype, self.compute_dtype)
        return normalize(inputs, gamma, beta)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon}


@functools.cache
def _normalization(epsilon: float, dtype: str, output_dtype: str) -> Callable[[Any, Any, Any], Any]:
    """Return a function of inputs, gamma and beta, with the gradient in closed form.

    With y = (x - mean) / deviation, and g the upstream gradient times gamma, the gradient of x is
    (g - mean(g) - y mean(g y)) / deviation.
    """

    @custom_gradient
    def normalize(inputs: Any, gamma: Any, beta: Any) -> Any:
        centered = ops.cast(inputs, dtype)
        centered = centered - _row_mean(centered)
        variance = _row_mean(ops.square(centered))
        scale = ops.rsqrt(variance + epsilon)
        normalized = centered * scale

        def gradient(upstream: Any) -> Any:
            upstream = ops.cast(upstream, dtype)
            leading = tuple(range(len(upstream.shape) - 1))
            along_normalized = upstream * normalized
            gamma_gradient = ops.sum(along_normalized, axis=leading)
            beta_gradient = ops.sum(upstream, axis=leading)
            weighted = upstream * gamma
            slope = _row_mean(along_normalized * gamma)
            centered_gradient = weighted - _row_mean(weighted) - normalized * slope
            return ops.cast(centered_gradient * scale, inputs.dtype), gamma_gradient, beta_gradient

        return ops.cast(normalized * gamma + beta, output_dtype), gradient

    return normalize


def _row_mean(values: Any) -> Any:
    return ops.mean(values, axis=-1, keepdims=True)
