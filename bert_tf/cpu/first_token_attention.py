"""Attention of each row's first token alone, without the keys and values of all tokens.

A query q has with a token's key, W x + b, the product (transpose(W) q) x + q b. The second term is
one number for all keys of a row, which softmax does not see. Values are projected after their mean,
too: that of W x + b, weighted by p, is W times the mean of x, plus b times the sum of p. With one
query per row, a token costs 2 x heads x width multiplications, instead of 2 x width^2 for its key
and value and 2 x width for attention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def first_token_context(
    firsts: tf.Tensor,
    rows: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor,
    probabilities: Callable[[tf.Tensor], tf.Tensor],
    *,
    num_heads: int,
) -> tf.Tensor:
    """What first tokens gather from their rows.

    Args:
        firsts: float [batch, hidden].
        rows: of the same dtype, [batch, length, hidden].
        kernel, bias: of the same dtype, [hidden, 3 * hidden] and [3 * hidden], of queries, keys and
            values; the bias of keys is not used.
        probabilities: gives for products, [batch, heads, 1, length], what the values are weighted
            by.
        num_heads: attention heads.

    Returns:
        [batch, hidden], to be projected.
    """
    import tensorflow as tf

    width = rows.shape[-1]
    size = width // num_heads
    query_kernel, key_kernel, value_kernel = tf.split(kernel, 3, axis=1)
    queries = tf.reshape(firsts @ query_kernel + bias[:width], [-1, num_heads, size])
    key_kernel = tf.transpose(tf.reshape(key_kernel, [width, num_heads, size]), [1, 2, 0])
    queries = _for_each_head(queries, key_kernel)
    products = tf.matmul(queries, rows, transpose_b=True)[:, :, None]
    weights = probabilities(products)[:, :, 0]
    value_kernel = tf.transpose(tf.reshape(value_kernel, [width, num_heads, size]), [1, 0, 2])
    context = _for_each_head(weights @ rows, value_kernel)
    total = tf.cast(tf.reduce_sum(tf.cast(weights, tf.float32), axis=-1), context.dtype)
    context += total[:, :, None] * tf.reshape(bias[2 * width :], [num_heads, size])
    return tf.reshape(context, [-1, width])


def _for_each_head(values: tf.Tensor, kernels: tf.Tensor) -> tf.Tensor:
    """[batch, heads, n] and [heads, n, m] to [batch, heads, m]."""
    import tensorflow as tf

    return tf.transpose(tf.transpose(values, [1, 0, 2]) @ kernels, [1, 0, 2])
