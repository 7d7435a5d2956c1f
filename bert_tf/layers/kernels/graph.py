"""Kernels in TensorFlow graphs on processors, with their gradients.

Each computes what a chain of Keras' operations elsewhere in `bert_tf.layers` does, in bfloat16 or
float32. Second derivatives are not defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bert_tf.layers.kernels.gelu import gelu_entry, gelu_gradient_entry, tanh_gelu_entry
from bert_tf.layers.kernels.keep_elements import keep_elements_entry
from bert_tf.layers.kernels.operation import kind_of, like, results_of, sums_like
from bert_tf.layers.kernels.softmax import softmax_entry, softmax_gradient_entry
from bert_tf.layers.kernels.sum_norm import sum_norm_entry, sum_norm_gradient_entry

if TYPE_CHECKING:
    import tensorflow as tf


def kept_elements(key: tf.Tensor, counter: tf.Tensor, shape: tf.Tensor, *, level: int) -> tf.Tensor:
    """Which draws of dropout are below a level, bool.

    Args:
        key, counter: uint64 [1], of the generator; see `bert_tf.layers.dropout.keep_mask`.
        shape: int32 [rank], of the result.
        level: of 256.
    """
    import tensorflow as tf

    arguments = [key, counter, tf.constant([level])]
    return results_of(
        keep_elements_entry(), arguments, [(shape, tf.bool)], row_axes=0, divided=len(arguments)
    )[0]


def biased_gelu(inputs: tf.Tensor, bias: tf.Tensor, *, is_exact: bool) -> tf.Tensor:
    """GELU of inputs plus bias.

    Args:
        inputs: bfloat16 or float32 [rows, width].
        bias: of their dtype, [width].
        is_exact: or the tanh approximation.
    """
    import tensorflow as tf

    bias = tf.convert_to_tensor(bias)
    kind = kind_of(inputs, bias)
    entry = gelu_entry(kind) if is_exact else tanh_gelu_entry(kind)

    @tf.custom_gradient
    def activate(inputs: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Any]:
        outputs, slopes = results_of(entry, [inputs, bias], like(inputs, inputs), row_axes=1)

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            of_inputs, of_bias = results_of(
                *(gelu_gradient_entry(kind), [upstream, slopes], like(upstream) + sums_like(bias)),
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
    """LayerNorm of `hidden` plus what dropout leaves of `change` plus `bias`.

    Args:
        hidden, change: bfloat16 or float32 [..., width].
        bias: of their dtype, [width].
        keep: bool of their shape; None for no dropout.
        gamma, beta: float32 [width].
        keep_scale: of what dropout keeps.
        epsilon: added to the variance.
    """
    import tensorflow as tf

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
    """Softmax of scaled scores plus bias over the last axis, then dropout.

    Args:
        scores: bfloat16 or float32 [batch, heads, queries, keys].
        bias: float32 [1 or batch, 1 or heads, 1 or queries, keys], which gets no gradient; None
            for 0.
        keep: bool of the scores' shape; None for no dropout.
        scale: of the scores.
        keep_scale: of what dropout keeps.
    """
    import tensorflow as tf

    kind = kind_of(scores)
    numbers = tf.constant([scale, keep_scale])
    added = tf.zeros([0, 0, 0, 0]) if bias is None else bias
    mask = tf.zeros([0, 0, 0, 0], tf.bool) if keep is None else keep

    @tf.custom_gradient
    def attend(scores: tf.Tensor) -> tuple[tf.Tensor, Any]:
        outputs, probabilities = results_of(
            *(softmax_entry(kind), [scores, added, mask, numbers], like(scores, scores)),
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
