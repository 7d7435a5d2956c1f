"""Kernels in TensorFlow graphs on CPUs, with first derivatives.

Each function computes a chain of operations of `bert_tf.layers` in bfloat16 or float32. Tensors
that a gradient only needs the shape of are not captured by it: otherwise they would stay in memory
until the backward pass.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.cpu.kernels.elements import (
    DRAWS_OF_PAIR,
    gelu_entry,
    gelu_gradient_entry,
    keep_elements_entry,
)
from bert_tf.cpu.kernels.heads import heads_entry, heads_gradient_entry
from bert_tf.cpu.kernels.operation import PIECE_SIZE, kind_of, like, results_of, sums_like
from bert_tf.cpu.kernels.softmax import softmax_entry, softmax_gradient_entry
from bert_tf.cpu.kernels.sum_norm import sum_norm_entry, sum_norm_gradient_entry


def biased_heads(
    projected: tf.Tensor,
    bias: tf.Tensor,
    numbers: tf.Tensor | None = None,
    *,
    parts: int,
    num_heads: int,
) -> list[tf.Tensor]:
    """Divide a projection into heads, and add its bias.

    Args:
        projected: bfloat16 or float32 [batch, length, width], or [1, tokens, width] of a row
            without padding; queries first, then keys and values.
        bias: like `projected`, [width].
        numbers: int32 [batch, length], number of each token in the row without padding, -1 for
            padding left out; None for padded rows.
        parts: number of queries, keys and values, 1 to 3.
        num_heads: heads of each part.

    Returns:
        The parts, [batch, num_heads, length, width / parts / num_heads] each, 0 on padding left
        out.
    """
    kind = kind_of(projected, bias)
    size = projected.shape[-1] // (parts * num_heads)
    padded = projected if numbers is None else numbers
    numbers = tf.zeros([0, 0], tf.int32) if numbers is None else numbers

    @tf.custom_gradient
    def divide(projected: tf.Tensor, bias: tf.Tensor) -> tuple[list[tf.Tensor], Any]:
        batch, length = tf.unstack(tf.shape(padded)[:2])
        result = (tf.stack([batch, num_heads, length, size]), projected.dtype)
        outputs = results_of(
            heads_entry(kind, parts),
            [projected, bias, numbers],
            [result] * parts,
            row_axes=3,
            divided=3,
        )
        # Outside of `gradient`, which would keep the projection in memory only for its shape.
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
    """Join the heads of each token: the inverse of one part of `biased_heads`.

    Args:
        context: bfloat16 or float32 [batch, heads, length, size].
        numbers: see `biased_heads`.
        tokens: int32 [], number of tokens of the row without padding; None for padded rows.

    Returns:
        [1, tokens, heads x size], or of padded rows [batch, length, heads x size].
    """
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
        # Outside of `gradient`, which would keep the context in memory only for its shape.
        gradients = like(context)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            no_bias = tf.zeros([width], upstream.dtype)
            (of_context,) = results_of(
                heads_entry(kind, 1), [upstream, no_bias, numbers], gradients, row_axes=3, divided=3
            )
            return of_context

        return joined, gradient

    return join(context)


def padded_rows(hidden: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Pad a row without padding with 0.

    Args:
        hidden: bfloat16 or float32 [1, tokens, width].
        numbers: see `biased_heads`.

    Returns:
        [batch, length, width].
    """
    no_bias = tf.zeros([hidden.shape[-1]], hidden.dtype)
    (rows,) = biased_heads(hidden, no_bias, numbers, parts=1, num_heads=1)
    return tf.squeeze(rows, axis=1)


def kept_elements(key: tf.Tensor, counter: tf.Tensor, shape: tf.Tensor, *, level: int) -> tf.Tensor:
    """Return which draws of dropout are below a level; see `keep_elements`.

    Args:
        key, counter: uint64 [1].
        shape: int32 [rank], shape of the result.
        level: 0 to 255.
    """
    assert PIECE_SIZE % DRAWS_OF_PAIR == 0  # pieces begin with the first draw of a pair
    arguments = [key, counter, tf.constant([level])]
    return results_of(
        keep_elements_entry(), arguments, [(shape, tf.bool)], row_axes=0, divided=len(arguments)
    )[0]


def biased_gelu(inputs: tf.Tensor, bias: tf.Tensor, *, is_exact: bool) -> tf.Tensor:
    """Return GELU of inputs plus bias.

    Args:
        inputs: bfloat16 or float32 [rows, width].
        bias: like `inputs`, [width].
        is_exact: whether it is exact, or the tanh approximation.
    """
    bias = tf.convert_to_tensor(bias)
    kind = kind_of(inputs, bias)

    @tf.custom_gradient
    def activate(inputs: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Any]:
        entry = gelu_entry(kind, is_exact)
        outputs, slopes = results_of(entry, [inputs, bias], like(inputs, inputs), row_axes=1)

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            of_inputs, of_bias = results_of(
                gelu_gradient_entry(kind),
                [upstream, slopes],
                like(upstream) + sums_like(bias),
                row_axes=1,
                sums=1,
            )
            return [of_inputs, tf.cast(of_bias, bias.dtype)]

        return outputs, gradient

    return activate(inputs, bias)


def normalized_sum(
    hidden: tf.Tensor,
    change: tf.Tensor,
    bias: tf.Tensor,
    keep: tf.Tensor | None,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    *,
    keep_scale: float,
    epsilon: float,
) -> tf.Tensor:
    """Return LayerNorm of `hidden` plus dropout of (`change` plus `bias`).

    Args:
        hidden, change: bfloat16 or float32 [..., width].
        bias: like them, [width].
        keep: bool of their shape, elements that dropout keeps; None for no dropout.
        gamma, beta: float32 [width].
        keep_scale: factor of elements that dropout keeps.
        epsilon: added to the variance.
    """
    kind = kind_of(hidden, change, bias)
    numbers = tf.constant([keep_scale, epsilon])
    mask = tf.zeros([0, hidden.shape[-1]], tf.bool) if keep is None else keep

    @tf.custom_gradient
    def normalize(*sources: tf.Tensor) -> tuple[tf.Tensor, Any]:
        hidden, change, bias, gamma, beta = sources
        (outputs,) = results_of(
            sum_norm_entry(kind),
            [hidden, change, bias, mask, gamma, beta, numbers],
            like(hidden),
            row_axes=1,
        )

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            of_hidden, of_change, of_bias, *others = results_of(
                sum_norm_gradient_entry(kind),
                [upstream, hidden, change, bias, mask, gamma, numbers],
                like(hidden, change) + sums_like(bias, gamma, beta),
                row_axes=1,
                sums=3,
            )
            return [of_hidden, of_change, tf.cast(of_bias, bias.dtype), *others]

        return outputs, gradient

    return normalize(hidden, change, bias, gamma, beta)


def dropped_softmax(
    scores: tf.Tensor,
    bias: tf.Tensor | None,
    keep: tf.Tensor | None,
    *,
    scale: float,
    keep_scale: float,
) -> tf.Tensor:
    """Return the softmax of scaled scores plus bias over the last axis, then dropout.

    Args:
        scores: bfloat16 or float32 [batch, heads, queries, keys].
        bias: float32 [1 or batch, 1 or heads, 1 or queries, keys], which gets no gradient; None for
            0.
        keep: bool of the scores' shape, elements that dropout keeps; None for no dropout.
        scale: factor of the scores.
        keep_scale: factor of elements that dropout keeps.
    """
    kind = kind_of(scores)
    numbers = tf.constant([scale, keep_scale])
    added = tf.zeros([0, 0, 0, 0]) if bias is None else bias
    mask = tf.zeros([0, 0, 0, 0], tf.bool) if keep is None else keep

    @tf.custom_gradient
    def attend(scores: tf.Tensor) -> tuple[tf.Tensor, Any]:
        outputs, probabilities = results_of(
            softmax_entry(kind),
            [scores, added, mask, numbers],
            like(scores, scores),
            row_axes=3,
        )

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            return results_of(
                softmax_gradient_entry(kind),
                [upstream, probabilities, mask, numbers],
                like(upstream),
                row_axes=3,
            )[0]

        return outputs, gradient

    return attend(scores)
