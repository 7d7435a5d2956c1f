"""Multi-head self-attention with one projection for queries, keys and values."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.layers.dropout import StatelessDropout, dropped
from bert_tf.layers.projection import Projection

MASKED_SCORE = -1e9  # added to scores of masked keys, whose probability is then 0


def attention_bias(attention_mask: Any) -> Any:
    """Return the bias of the scores, by which masked keys get no attention.

    A query without any visible key attends to all keys alike, so padding never makes NaN.

    Args:
        attention_mask: int or bool, true for keys that may be attended to: [batch, length] for all
            queries of a row, or [batch, query, key], for instance block-diagonal for several texts
            in a row.

    Returns:
        float32 [batch, 1, 1, length] or [batch, 1, length, length].
    """
    mask = ops.cast(attention_mask, "float32")
    mask = mask[:, None, :, :] if len(mask.shape) == 3 else mask[:, None, None, :]
    return (1.0 - mask) * MASKED_SCORE


def same_sequence_mask(sequence_ids: Any) -> Any:
    """Return whether query and key have equal ids: bool [batch, length, length].

    Args:
        sequence_ids: int [batch, length].
    """
    return ops.equal(sequence_ids[:, :, None], sequence_ids[:, None, :])


def gather_positions(hidden: Any, positions: Any) -> Any:
    """Select tokens of every row.

    Args:
        hidden: float [batch, length, width].
        positions: int [batch, number].

    Returns:
        float [batch, number, width].
    """
    batch, length, width = ops.shape(hidden)
    row_starts = ops.arange(batch, dtype="int32")[:, None] * length
    flat_positions = ops.reshape(ops.cast(positions, "int32") + row_starts, (-1,))
    gathered = ops.take(ops.reshape(hidden, (-1, width)), flat_positions, axis=0)
    return ops.reshape(gathered, (batch, ops.shape(positions)[1], width))


def bias_of_queries(attention_bias: Any | None, positions: Any) -> Any | None:
    """Return the attention bias, or None, of the queries at int [batch, number]."""
    if attention_bias is None or attention_bias.shape[2] == 1:
        return attention_bias
    return gather_positions(attention_bias[:, 0], positions)[:, None]


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
        num_heads: number of heads.
        dropout_rate: dropout rate of the probabilities.
        dropout_stream: see `StatelessDropout`.
        initializer_range: standard deviation of initial kernels.
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
    ) -> Any:
        """Attend to all tokens of a row.

        Args:
            hidden: float [batch, length, hidden].
            attention_bias: float32, broadcasting to [batch, heads, query, key]; None for none.
            dropout_key: int32 [2]; None for no dropout.
            positions: int [batch, number], tokens that attend; None for all.

        Returns:
            float [batch, length or number, hidden].
        """
        query, key, value = self._query_key_value(hidden, positions)
        if positions is not None:
            attention_bias = bias_of_queries(attention_bias, positions)
        dropout = self.probability_dropout
        scores = self._scores(query, key)
        keep = dropout.kept(scores, dropout_key)
        probabilities = dropped(_probabilities(scores, attention_bias), keep, dropout.rate)
        context = ops.matmul(ops.cast(probabilities, self.compute_dtype), value)
        batch, _, length, _ = ops.shape(context)
        context = ops.transpose(context, (0, 2, 1, 3))
        return self.output_projection(ops.reshape(context, (batch, length, hidden.shape[-1])))

    def probabilities(self, hidden: Any, attention_bias: Any | None = None) -> Any:
        """Return the attention weights without dropout: float32 [batch, heads, query, key]."""
        query, key, _ = self._query_key_value(hidden, None)
        return _probabilities(self._scores(query, key), attention_bias)

    def _query_key_value(self, hidden: Any, positions: Any | None) -> list[Any]:
        """Return [batch, heads, length, head size] each; queries only at `positions`."""
        if positions is None:
            return self._heads(self.query_key_value(hidden), 3)
        of_positions = gather_positions(hidden, positions)
        query, others = self.query_key_value.in_two(of_positions, hidden, hidden.shape[-1])
        return [*self._heads(query, 1), *self._heads(others, 2)]

    def _heads(self, projected: Any, parts: int) -> list[Any]:
        """Split [batch, length, parts x hidden] to `parts` of [batch, heads, length, head size]."""
        batch, length, width = ops.shape(projected)
        shape = (batch, length, parts, self.num_heads, width // (parts * self.num_heads))
        return ops.unstack(
            ops.transpose(ops.reshape(projected, shape), (2, 0, 3, 1, 4)), parts, axis=0
        )

    def _scores(self, query: Any, key: Any) -> Any:
        query = query * ops.cast(query.shape[-1] ** -0.5, query.dtype)
        return ops.matmul(query, ops.swapaxes(key, -1, -2))

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
