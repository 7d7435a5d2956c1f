"""Token vectors to the vector of a text; graph-safe."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

_SMALLEST_NORM = 1e-12


def combine_layers(hidden_states: Sequence[tf.Tensor], combination: str) -> tf.Tensor:
    """Layers side by side, as in the feature-based BERT (Devlin et al. 2019, section 5.3), or their
    mean.

    Args:
        hidden_states: float32 [batch, length, hidden] of each chosen layer.
        combination: `concat` or `mean`.
    """
    if combination == "concat":
        return tf.concat(hidden_states, axis=-1)
    return tf.add_n(list(hidden_states)) / len(hidden_states)


def pool_tokens(states: tf.Tensor, mask: tf.Tensor, pooling: str) -> tf.Tensor:
    """The vector of each text, [batch, hidden].

    Args:
        states: float32 [batch, length, hidden].
        mask: int32 [batch, length], 1 for tokens, 0 for padding; at least one token a row.
        pooling: `mean`, `cls` or `max`; see `EmbeddingRecipe`.
    """
    if pooling == "cls":
        return states[:, 0]
    if pooling == "max":
        is_token = tf.cast(mask, tf.bool)[:, :, None]
        return tf.reduce_max(tf.where(is_token, states, states.dtype.min), axis=1)
    weights = tf.cast(mask, states.dtype)[:, :, None]
    return tf.reduce_sum(states * weights, axis=1) / tf.reduce_sum(weights, axis=1)


def unit_vectors(vectors: tf.Tensor) -> tf.Tensor:
    """Vectors divided by their Euclidean norm, which is at least 1e-12 as in PyTorch."""
    norm = tf.norm(vectors, axis=-1, keepdims=True)
    return vectors / tf.maximum(norm, _SMALLEST_NORM)
