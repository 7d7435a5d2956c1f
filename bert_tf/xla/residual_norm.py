"""Dropout, residual sum and LayerNorm in few passes over memory."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.layers.dropout import StatelessDropout, keep_scale
from bert_tf.layers.layer_norm import LayerNorm
from bert_tf.xla.barrier import behind_barrier


def normalized_sum(
    layer: LayerNorm, hidden: Any, change: Any, dropout: StatelessDropout, key: Any | None
) -> Any:
    """Compute `LayerNorm.of_sum`, whose sum is stored in the dtype of its terms.

    Statistics, and all factors of a row, are float32. What reaches memory, the sum, the
    result and the gradient of the sum, has 16 bits where the terms have. The gradient computes from
    the stored sum and the mean and deviation of its rows.

    Args:
        layer: with the weights.
        hidden, change: float [batch, length, hidden], in the compute dtype.
        dropout: dropout of `change`.
        key: int32 [2]; None for no dropout.

    Returns:
        [batch, length, hidden] in the compute dtype.
    """
    keep = dropout.kept(change, key)
    wide = tf.as_dtype(layer.variable_dtype)

    def masked(values: tf.Tensor) -> tf.Tensor:
        values = tf.cast(values, wide)
        if keep is None:
            return values
        return values * (tf.cast(keep, wide) * keep_scale(dropout.rate))

    @tf.custom_gradient
    def normalize(hidden: tf.Tensor, change: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> Any:
        (stored,) = behind_barrier(tf.cast(tf.cast(hidden, wide) + masked(change), hidden.dtype))
        mean = _row_mean(tf.cast(stored, wide))
        centered = tf.cast(stored, wide) - mean
        scale = tf.math.rsqrt(_row_mean(tf.square(centered)) + layer.epsilon)
        output = tf.cast(centered * scale * gamma + beta, layer.compute_dtype)

        def gradient(upstream: tf.Tensor) -> Any:
            again, of_row, factor, upstream = behind_barrier(stored, mean, scale, upstream)
            unit = (tf.cast(again, wide) - of_row) * factor
            upstream = tf.cast(upstream, wide)
            leading = list(range(len(upstream.shape) - 1))
            weighted = upstream * gamma
            slope = _row_mean(weighted * unit)
            of_sum = (weighted - _row_mean(weighted) - unit * slope) * factor
            (of_sum,) = behind_barrier(tf.cast(of_sum, hidden.dtype))
            return (
                of_sum,
                tf.cast(masked(of_sum), change.dtype),
                tf.reduce_sum(upstream * unit, leading),
                tf.reduce_sum(upstream, leading),
            )

        return behind_barrier(output)[0], gradient

    return normalize(hidden, change, tf.reshape(layer.gamma, [-1]), tf.reshape(layer.beta, [-1]))


def _row_mean(values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(values, axis=-1, keepdims=True)
