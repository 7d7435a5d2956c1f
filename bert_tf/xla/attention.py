"""Self-attention in the forms that GPUs run fast: cuDNN's kernels, or operations that XLA fuses."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf
from keras import ops

from bert_tf.layers.dropout import keep_scale
from bert_tf.layers.encoder_inputs import EncoderInputs
from bert_tf.layers.self_attention import SelfAttention, bias_of_queries, gather_positions
from bert_tf.xla import cudnn


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionMask:
    """Which keys the queries of a batch may see.

    Attributes:
        bias: float32, added to the scores: [batch, 1, 1, keys], or [batch, 1, queries, keys] for
            several texts in a row; None if all keys are seen.
        lengths: int32 [batch], tokens of each row, which come first; None for several texts.
    """

    bias: Any | None
    lengths: Any | None

    @classmethod
    def of(cls, inputs: EncoderInputs) -> AttentionMask:
        """Read the mask of a batch, whose rows are padded at their end."""
        mask = inputs.attention_mask
        lengths = None
        if mask is None:
            rows, length = ops.shape(inputs.input_word_ids)
            lengths = tf.fill([rows], length)
        elif inputs.is_padded:
            lengths = tf.reduce_sum(tf.cast(mask, tf.int32), axis=-1)
        return cls(bias=inputs.attention_bias(), lengths=lengths)

    def of_queries(self, positions: Any | None) -> AttentionMask:
        """Return the mask of some queries of each row, int [batch, number]; None for all."""
        if positions is None:
            return self
        return dataclasses.replace(self, bias=bias_of_queries(self.bias, positions))


def attention_output(
    layer: SelfAttention,
    hidden: Any,
    mask: AttentionMask,
    *,
    dropout_key: Any | None,
    positions: Any | None,
    is_fused: bool,
) -> Any:
    """Compute `SelfAttention.call`.

    Args:
        hidden: [batch, length, hidden], in the compute dtype.
        mask: of all queries of a row.
        dropout_key: int32[2]; None for no dropout.
        positions: int [batch, number], the queries; None for all.
        is_fused: whether cuDNN may compute it, where `can_fuse` allows.

    Returns:
        [batch, length or number, hidden] in the compute dtype.
    """
    query, key, value = _query_key_value(layer, hidden, positions)
    mask = mask.of_queries(positions)
    if is_fused and can_fuse(layer, query, dropout_key):
        context = _fused_context(query, key, value, mask)
    else:
        context = _plain_context(layer, query, key, value, mask, dropout_key)
    return layer.output_projection(tf.reshape(context, [*ops.shape(query)[:2], hidden.shape[-1]]))


def can_fuse(layer: SelfAttention, query: Any, dropout_key: Any | None) -> bool:
    """Tell whether cuDNN has a kernel for a layer's attention; it has none with our dropout."""
    has_dropout = dropout_key is not None and layer.dropout_rate > 0
    has_kernel = cudnn.has_kernel(query.shape[-1])
    return query.dtype in cudnn.ELEMENT_TYPES and has_kernel and not has_dropout


def _query_key_value(layer: SelfAttention, hidden: Any, positions: Any | None) -> list[Any]:
    """Return tensors [batch, tokens, heads, size]; queries of the tokens at `positions` only."""
    if positions is None:
        return _heads(layer, layer.query_key_value(hidden), 3)
    of_positions = gather_positions(hidden, positions)
    query, others = layer.query_key_value.in_two(of_positions, hidden, hidden.shape[-1])
    return [*_heads(layer, query, 1), *_heads(layer, others, 2)]


def _heads(layer: SelfAttention, projected: Any, parts: int) -> list[Any]:
    """Split [batch, tokens, parts x hidden] to `parts` of [batch, tokens, heads, size]."""
    rows, tokens, width = ops.shape(projected)
    size = width // (parts * layer.num_heads)
    return tf.unstack(tf.reshape(projected, [rows, tokens, parts, layer.num_heads, size]), axis=2)


def _fused_context(query: Any, key: Any, value: Any, mask: AttentionMask) -> Any:
    """Return [batch, queries, heads, size]; lengths are cheaper than a bias, which must be read."""
    if mask.lengths is not None:
        return cudnn.attention(query, key, value, lengths=mask.lengths)
    bias = tf.cast(tf.maximum(mask.bias, cudnn.HIDDEN_KEY), query.dtype)
    return cudnn.attention(query, key, value, bias=tf.stop_gradient(bias))


def _plain_context(
    layer: SelfAttention,
    query: Any,
    key: Any,
    value: Any,
    mask: AttentionMask,
    dropout_key: Any | None,
) -> Any:
    """Return [batch, queries, heads, size], with dropout; scores are written to memory once."""
    scaled = query * tf.cast(query.shape[-1] ** -0.5, query.dtype)
    query, key, value = (tf.transpose(each, [0, 2, 1, 3]) for each in (scaled, key, value))
    scores = tf.matmul(query, key, transpose_b=True)
    dropout = layer.probability_dropout
    keep = dropout.kept(scores, dropout_key)
    probabilities = _probabilities(scores, mask.bias, keep, dropout.rate)
    return tf.transpose(tf.matmul(probabilities, value), [0, 2, 1, 3])


def _probabilities(scores: Any, bias: Any | None, keep: Any | None, rate: float) -> Any:
    """Compute softmax and dropout, without a float32 tensor as large as the scores in memory.

    Statistics are float32. What is kept for the gradient has the dtype of the scores, and terms of
    a sum are computed where the sum is, so XLA fuses each pass into one kernel.

    Args:
        scores: [batch, heads, queries, keys].
        bias: float32, broadcasting to that; None adds nothing.
        keep: bool, in the shape of the scores, see `bert_tf.layers.dropout`; None keeps all.

    Returns:
        Probabilities in the shape and dtype of the scores.
    """

    def masked(values: Any) -> Any:
        values = tf.cast(values, tf.float32)
        return values if keep is None else values * (tf.cast(keep, tf.float32) * keep_scale(rate))

    @tf.custom_gradient
    def attend(scores: tf.Tensor) -> Any:
        wide = tf.cast(scores, tf.float32)
        if bias is not None:
            wide = wide + bias
        wide = wide - tf.reduce_max(wide, axis=-1, keepdims=True)
        logarithm = tf.math.log(tf.reduce_sum(tf.exp(wide), axis=-1, keepdims=True))
        kept = tf.cast(tf.exp(wide - logarithm), scores.dtype)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            weighted = masked(upstream) * tf.cast(kept, tf.float32)
            total = tf.reduce_sum(weighted, axis=-1, keepdims=True)
            return tf.cast(weighted - tf.cast(kept, tf.float32) * total, scores.dtype)

        return tf.cast(masked(kept), scores.dtype), gradient

    return attend(scores)
