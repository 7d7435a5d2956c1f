"""The gradient of word embeddings in an order that does not depend on the device's threads."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def look_up_sorted(table: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Compute `tf.gather` of rows, [n, width] at int [...], with `sorted_sums` for the gradient."""

    @tf.custom_gradient
    def look_up(table: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            rows = tf.reshape(upstream, [-1, table.shape[-1]])
            return sorted_sums(rows, tf.reshape(ids, [-1]), table.shape[0])

        return tf.gather(table, ids), gradient

    return look_up(table)


def sorted_sums(values: Any, ids: Any, size: int) -> Any:
    """Add up values, [n, width], with equal ids, int [n] below `size`: [size, width].

    In an order that only the ids decide, without a scatter: XLA's deterministic one adds rows one
    after the other on GPUs. Sums of ever longer runs of sorted rows (Hillis and Steele 1986).
    """
    order = tf.argsort(ids, stable=True)
    ids, values = tf.gather(ids, order), tf.gather(values, order)
    count = tf.shape(ids)[0]
    places = tf.range(count)

    def add_before(distance: Any, values: Any) -> tuple[Any, Any]:
        is_same = (places >= distance) & (tf.roll(ids, distance, axis=0) == ids)
        before = tf.roll(values, distance, axis=0)
        return 2 * distance, values + tf.where(is_same[:, None], before, 0.0)

    _, sums = tf.while_loop(
        lambda distance, _: distance < count, add_before, (tf.constant(1), values)
    )
    rows = tf.range(size, dtype=ids.dtype)
    last = tf.maximum(tf.searchsorted(ids, rows, side="right") - 1, 0)
    return tf.where((tf.gather(ids, last) == rows)[:, None], tf.gather(sums, last), 0.0)
