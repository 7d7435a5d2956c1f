"""Multi-head self-attention with one projection for queries, keys and values."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.cpu.first_token_attention import first_token_context
from bert_tf.cpu.switch import are_fused
from bert_tf.layers.dropout import StatelessDropout, dropped, keep_scale
from bert_tf.layers.gather_positions import gather_positions
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


def _scale(head_size: int) -> float:
    return head_size**-0.5


def _scores(query: Any, key: Any) -> Any:
    query = query * ops.cast(_scale(query.shape[-1]), query.dtype)
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
        token_numbers: Any | None = None,
        is_finished: bool = True,
    ) -> Any:
        """Lets tokens gather from all tokens of their row.

        Args:
            hidden: [batch, length, hidden], or [1, tokens, hidden] without padding.
            attention_bias: float32, broadcasting to [batch, heads, query, key], or None.
            dropout_key: int32[2]; None for no dropout.
            positions: int [batch, number], which tokens gather; None for all of them.
            token_numbers: int32 [batch, length] where `hidden` is without padding, see
                `bert_tf.cpu.unpadding.Unpadded`; None for padded rows. Positions then are the
                numbers of the first tokens, int32 [1, batch].
            is_finished: False leaves the last bias to the caller.

        Returns:
            Like `hidden`, or of the tokens at `positions` alone [batch, number, hidden], without
            padding [1, batch, hidden]. Unfinished, a pair with the bias, [hidden].
        """
        if token_numbers is not None and positions is not None:
            context = self._context_of_first(
                hidden, positions, token_numbers, attention_bias, dropout_key
            )
            return self.output_projection(context, is_finished=is_finished)
        is_fused = are_fused()
        if positions is None:
            projected = self.query_key_value(hidden, is_finished=not is_fused)
            query, key, value = self._heads(projected, 3, token_numbers)
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
        context = self._joined(ops.matmul(probabilities, value), hidden, token_numbers)
        return self.output_projection(context, is_finished=is_finished)

    def _context_of_first(
        self,
        hidden: Any,
        firsts: Any,
        token_numbers: Any,
        attention_bias: Any | None,
        dropout_key: Any | None,
    ) -> Any:
        from bert_tf.cpu.kernels.graph import padded_rows

        kernel, bias = (
            ops.cast(ops.convert_to_tensor(weight), self.compute_dtype)
            for weight in (self.query_key_value.kernel, self.query_key_value.bias)
        )
        size = hidden.shape[-1] // self.num_heads
        context = first_token_context(
            gather_positions(hidden, firsts)[0],
            padded_rows(hidden, token_numbers),
            kernel,
            bias,
            lambda products: self._dropped_softmax(products, attention_bias, dropout_key, size),
            num_heads=self.num_heads,
        )
        return context[None]

    def _dropped_probabilities(
        self, query: Any, key: Any, attention_bias: Any | None, dropout_key: Any | None
    ) -> Any:
        if are_fused():
            import tensorflow as tf

            products = tf.matmul(query, key, transpose_b=True)
            return self._dropped_softmax(products, attention_bias, dropout_key, query.shape[-1])
        dropout = self.probability_dropout
        scores = _scores(query, key)
        keep = dropout.kept(scores, dropout_key)
        probabilities = dropped(_probabilities(scores, attention_bias), keep, dropout.rate)
        return ops.cast(probabilities, self.compute_dtype)

    def _dropped_softmax(
        self, products: Any, attention_bias: Any | None, dropout_key: Any | None, head_size: int
    ) -> Any:
        from bert_tf.cpu.kernels.graph import dropped_softmax

        dropout = self.probability_dropout
        return dropped_softmax(
            *(products, attention_bias, dropout.kept(products, dropout_key)),
            scale=_scale(head_size),
            keep_scale=keep_scale(dropout.rate),
        )

    def probabilities(self, hidden: Any, attention_bias: Any | None = None) -> Any:
        """What `call` weights the values of all tokens by, without dropout.

        Args:
            hidden, attention_bias: as of `call`.

        Returns:
            float32 [batch, heads, query, key]; the keys of a query add up to 1.
        """
        query, key, _ = self._heads(self.query_key_value(hidden), 3)
        return _probabilities(_scores(query, key), attention_bias)

    def _heads(self, projected: Any, parts: int, token_numbers: Any | None = None) -> list[Any]:
        """[batch, length, parts x hidden] to as many of [batch, heads, length, head size].

        Of a projection without the bias, both.
        """
        if isinstance(projected, tuple):
            from bert_tf.cpu.kernels.graph import biased_heads

            products, bias = projected
            return biased_heads(
                products, bias, token_numbers, parts=parts, num_heads=self.num_heads
            )
        batch, length, width = ops.shape(projected)
        shape = (batch, length, parts, self.num_heads, width // (parts * self.num_heads))
        return ops.unstack(
            ops.transpose(ops.reshape(projected, shape), (2, 0, 3, 1, 4)), parts, axis=0
        )

    def _joined(self, context: Any, hidden: Any, token_numbers: Any | None) -> Any:
        """[batch, heads, length, head size] to [batch, length, hidden], or without padding."""
        if are_fused():
            from bert_tf.cpu.kernels.graph import joined_heads

            tokens = None if token_numbers is None else ops.shape(hidden)[1]
            return joined_heads(context, token_numbers, tokens=tokens)
        batch, _, length, _ = ops.shape(context)
        return ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (batch, length, hidden.shape[-1]))

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
