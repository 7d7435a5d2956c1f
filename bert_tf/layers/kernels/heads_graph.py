"""Projections divided into heads in TensorFlow graphs on processors, with their gradients.

Tokens are those of padded rows, [batch, length, …], or of one row without padding, [1, tokens, …].
Then `numbers`, int32 [batch, length], has the number of each token in it, and -1 for padding that
it lacks; see `bert_tf.layers.unpadding`. Second derivatives are not defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bert_tf.layers.kernels.heads import heads_entry, heads_gradient_entry
from bert_tf.layers.kernels.operation import kind_of, like, results_of, sums_like

if TYPE_CHECKING:
    import tensorflow as tf


def biased_heads(
    projected: tf.Tensor,
    bias: tf.Tensor,
    numbers: tf.Tensor | None = None,
    *,
    parts: int,
    num_heads: int,
) -> list[tf.Tensor]:
    """Divides a projection into heads, and adds its bias.

    Args:
        projected: bfloat16 or float32 [batch, length, width], or [1, tokens, width] of a row
            without padding; queries first, then keys and values.
        bias: of their dtype, [width].
        numbers: see above; None for padded rows.
        parts: how many of queries, keys and values there are.
        num_heads: of each.

    Returns:
        The parts, [batch, num_heads, length, width / parts / num_heads] each.
    """
    import tensorflow as tf

    kind = kind_of(projected, bias)
    size = projected.shape[-1] // (parts * num_heads)
    padded = projected if numbers is None else numbers
    numbers = tf.zeros([0, 0], tf.int32) if numbers is None else numbers

    @tf.custom_gradient
    def divide(projected: tf.Tensor, bias: tf.Tensor) -> tuple[list[tf.Tensor], Any]:
        batch, length = tf.unstack(tf.shape(padded)[:2])
        result = tf.stack([batch, num_heads, length, size]), projected.dtype
        outputs = results_of(
            heads_entry(kind, parts),
            [projected, bias, numbers],
            [result] * parts,
            row_axes=3,
            divided=3,
        )
        # Here, or the backward pass would keep the projection for the sake of its shape.
        gradients = like(projected) + sums_like(bias)
        for output in outputs:
            output.set_shape([padded.shape[0], num_heads, padded.shape[1], size])

        def gradient(*upstream: tf.Tensor) -> list[tf.Tensor]:
            of_projected, of_bias = results_of(
                heads_gradient_entry(kind, parts),
                [*upstream, numbers],
                gradients,
                row_axes=3,
                sums=1,
            )
            return [of_projected, tf.cast(of_bias, bias.dtype)]

        return outputs, gradient

    return divide(projected, bias)


def joined_heads(
    context: tf.Tensor, numbers: tf.Tensor | None = None, *, tokens: tf.Tensor | None = None
) -> tf.Tensor:
    """Puts the heads of each token side by side: one part of `biased_heads` reversed.

    Args:
        context: bfloat16 or float32 [batch, heads, length, size].
        numbers: as of `biased_heads`.
        tokens: int32 [], of a row without padding; None for padded rows.

    Returns:
        [1, tokens, heads x size], or of padded rows [batch, length, heads x size].
    """
    import tensorflow as tf

    kind = kind_of(context)
    batch, heads, length, size = context.shape
    width = heads * size
    numbers = tf.zeros([0, 0], tf.int32) if numbers is None else numbers

    @tf.custom_gradient
    def join(context: tf.Tensor) -> tuple[tf.Tensor, Any]:
        rows = tf.gather(tf.shape(context), [0, 2]) if tokens is None else tf.stack([1, tokens])
        results = [(tf.concat([rows, [width]], axis=0), context.dtype), ([width], tf.float32)]
        joined, _ = results_of(
            heads_gradient_entry(kind, 1), [context, numbers], results, row_axes=3, sums=1
        )
        joined.set_shape([batch, length, width] if tokens is None else [1, None, width])
        gradients = like(context)  # here, or the backward pass would keep the context

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            no_bias = tf.zeros([width], upstream.dtype)
            (of_context,) = results_of(
                heads_entry(kind, 1),
                [upstream, no_bias, numbers],
                gradients,
                row_axes=3,
                divided=3,
            )
            return of_context

        return joined, gradient

    return join(context)


def padded_rows(hidden: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """The padded rows of a row without padding, 0 on padding that it lacks.

    Args:
        hidden: bfloat16 or float32 [1, tokens, width].
        numbers: as of `biased_heads`.

    Returns:
        [batch, length, width].
    """
    import tensorflow as tf

    no_bias = tf.zeros([hidden.shape[-1]], hidden.dtype)
    (rows,) = biased_heads(hidden, no_bias, numbers, parts=1, num_heads=1)
    return tf.squeeze(rows, axis=1)
