"""Multi-head self-attention with one projection for queries, keys and values."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.layers.dropout import StatelessDropout, dropped, keep_scale
from bert_tf.layers.gather_positions import gather_positions
from bert_tf.layers.kernels.choice import are_fused
from bert_tf.layers.projection import Projection

MASKED_SCORE = -1e9


def attention_bias(attention_mask: Any) -> Any:
    """What is added to the scores so that masked keys get no attention.

    Args:
        attention_mask: int or bool, true where a key may be seen: [batch, length] for all queries
            of a row, or [batch, query, key], for instance block-diagonal for several texts in one
            row.

    Returns:
        float32 [batch, 1, 1, length] or [batch, 1, length, length]. A query that sees no key at
        all attends to every key alike, so padding never makes NaN.
    """
    mask = ops.cast(attention_mask, "float32")
    mask = mask[:, None, :, :] if len(mask.shape) == 3 else mask[:, None, None, :]
    return (1.0 - mask) * MASKED_SCORE


def same_sequence_mask(sequence_ids: Any) -> Any:
    """Which tokens of a row see each other where it holds several sequences.

    Args:
        sequence_ids: int [batch, length], equal for the tokens of a sequence.

    Returns:
        bool [batch, length, length], true where query and key belong together.
    """
    return ops.equal(sequence_ids[:, :, None], sequence_ids[:, None, :])


def _scale(query: Any) -> float:
    return query.shape[-1] ** -0.5


def _scores(query: Any, key: Any) -> Any:
    query = query * ops.cast(_scale(query), query.dtype)
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


def _probabilities(scores: Any, attention_bias: Any | None) -> Any:
    scores = ops.cast(scores, "float32")
    if attention_bias is not None:
        scores = scores + ops.stop_gradient(attention_bias)
    return ops.softmax(scores, axis=-1)


@keras.saving.register_keras_serializable(package="bert_tf")
class SelfAttention(keras.layers.Layer):
    """Scaled dot-product self-attention (Vaswani et al. 2017, section 3.2).

    The `query_key_value` kernel is [hidden, 3 * hidden], queries first. The softmax is computed in
    float32 under every policy.

    Args:
        num_heads: attention heads; divides the hidden size.
        dropout_rate: dropout of the attention probabilities.
        dropout_stream: see `StatelessDropout`.
        initializer_range: standard deviation of the initial kernels.
    """

    def __init__(
        self,
        *,
        num_heads: int,
        dropout_rate: float,
        dropout_stream: int,
        initializer_range: float,
        **kwargs: Any,
    ):
        # Keras would cast the float32 attention bias down to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.dropout_stream = dropout_stream
        self.initializer_range = initializer_range
        self.probability_dropout = StatelessDropout(
            dropout_rate, stream=dropout_stream, dtype=self.dtype_policy, name="probability_dropout"
        )

    def build(self, input_shape: Any) -> None:
        hidden_size = input_shape[-1]
        self.query_key_value = Projection(
            3 * hidden_size,
            initializer_range=self.initializer_range,
            dtype=self.dtype_policy,
            name="query_key_value",
        )
        self.query_key_value.build((None, None, hidden_size))
        self.output_projection = Projection(
            hidden_size,
            initializer_range=self.initializer_range,
            dtype=self.dtype_policy,
            name="output_projection",
        )
        self.output_projection.build((None, None, hidden_size))

    def call(
        self,
        hidden: Any,
        attention_bias: Any | None = None,
        dropout_key: Any | None = None,
        positions: Any | None = None,
        is_finished: bool = True,
    ) -> Any:
        """Lets tokens gather from all tokens of their row.

        Args:
            hidden: [batch, length, hidden].
            attention_bias: float32, broadcasting to [batch, heads, query, key], or None.
            dropout_key: int32[2]; None for no dropout.
            positions: int [batch, number], which tokens gather; None for all of them.
            is_finished: False leaves the last bias to the caller.

        Returns:
            [batch, length, hidden], or [batch, number, hidden] of the tokens at `positions`.
            Unfinished, a pair with the bias, [hidden].
        """
        is_fused = are_fused()
        if positions is None:
            projected = self.query_key_value(hidden, is_finished=not is_fused)
            query, key, value = self._heads(projected, 3)
        else:
            projected = self.query_key_value(
                gather_positions(hidden, positions),
                other_inputs=hidden,
                width=hidden.shape[-1],
                is_finished=not is_fused,
            )
            (query,), (key, value) = self._heads(projected[0], 1), self._heads(projected[1], 2)
            if attention_bias is not None and attention_bias.shape[2] != 1:
                attention_bias = gather_positions(attention_bias[:, 0], positions)[:, None]
        probabilities = self._dropped_probabilities(query, key, attention_bias, dropout_key)
        context = ops.transpose(ops.matmul(probabilities, value), (0, 2, 1, 3))
        batch, number, _, _ = ops.shape(context)
        context = ops.reshape(context, (batch, number, hidden.shape[-1]))
        return self.output_projection(context, is_finished=is_finished)

    def _dropped_probabilities(
        self, query: Any, key: Any, attention_bias: Any | None, dropout_key: Any | None
    ) -> Any:
        dropout = self.probability_dropout
        if are_fused():
            import tensorflow as tf

            from bert_tf.layers.kernels.graph import dropped_softmax

            products = tf.matmul(query, key, transpose_b=True)
            return dropped_softmax(
                *(products, attention_bias, dropout.kept(products, dropout_key)),
                scale=_scale(query),
                keep_scale=keep_scale(dropout.rate),
            )
        scores = _scores(query, key)
        keep = dropout.kept(scores, dropout_key)
        probabilities = dropped(_probabilities(scores, attention_bias), keep, dropout.rate)
        return ops.cast(probabilities, self.compute_dtype)

    def probabilities(self, hidden: Any, attention_bias: Any | None = None) -> Any:
        """What `call` weights the values of all tokens by, without dropout.

        Args:
            hidden, attention_bias: as of `call`.

        Returns:
            float32 [batch, heads, query, key]; the keys of a query add up to 1.
        """
        query, key, _ = self._heads(self.query_key_value(hidden), 3)
        return _probabilities(_scores(query, key), attention_bias)

    def _heads(self, projected: Any, parts: int) -> list[Any]:
        """[batch, length, parts x hidden] to as many of [batch, heads, length, head size].

        Of a projection without the bias, both.
        """
        if isinstance(projected, tuple):
            from bert_tf.layers.kernels.graph import biased_heads

            return biased_heads(*projected, parts=parts, num_heads=self.num_heads)
        batch, length, width = ops.shape(projected)
        shape = (batch, length, parts, self.num_heads, width // (parts * self.num_heads))
        return ops.unstack(
            ops.transpose(ops.reshape(projected, shape), (2, 0, 3, 1, 4)), parts, axis=0
        )

    def compute_output_shape(self, input_shape: Any, *_: Any) -> Any:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout_rate": self.dropout_rate,
            "dropout_stream": self.dropout_stream,
            "initializer_range": self.initializer_range,
        }
