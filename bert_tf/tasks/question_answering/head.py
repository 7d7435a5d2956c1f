"""Start and end logits of every token, and the loss of spans."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.tasks.base.task import ROW_WEIGHTS, cross_entropy, weighted_hits
from bert_tf.training.protocols import Batch, LossParts

_FAR_BELOW = -1e9


def span_logits(
    model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
) -> dict[str, tf.Tensor]:
    """`start_logits` and `end_logits`, float32 [rows, length], far below zero on padding.

    Args:
        model: a `BertQuestionAnswerer`.
        batch: its input.
        training, dropout_key: as of the model.
    """
    start, end = model(batch, training=training, dropout_key=dropout_key)
    padding = _FAR_BELOW * (1.0 - tf.cast(batch["input_mask"], tf.float32))
    return {"start_logits": start + padding, "end_logits": end + padding}


def span_loss(outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
    """Mean of the cross-entropies of start and end; the fraction of windows with both right.

    Args:
        outputs: of `span_logits`.
        batch: with `start_position`, `end_position` and `row_weights`.
    """
    start, end = outputs["start_logits"], outputs["end_logits"]
    weights = batch[ROW_WEIGHTS]
    losses = 0.5 * (
        cross_entropy(start, batch["start_position"]) + cross_entropy(end, batch["end_position"])
    )
    both = (tf.argmax(start, axis=-1, output_type=tf.int32) == batch["start_position"]) & (
        tf.argmax(end, axis=-1, output_type=tf.int32) == batch["end_position"]
    )
    return LossParts(
        losses={"loss": tf.reduce_sum(losses * weights)},
        metrics={"span_accuracy": weighted_hits(both, weights)},
    )
