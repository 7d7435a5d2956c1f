"""The loss of a task as the training loop takes it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.tasks.base.task import Task
from bert_tf.training.protocols import Batch, LossParts


class FinetuningLoss:
    """Runs a task's model and sums its loss up; a `bert_tf.training.protocols.TaskLoss`.

    AutoGraph does not convert it: there is nothing to convert in it, and looking through the
    source of all it calls takes seconds.
    """

    def __init__(self, task: Task):
        self._task = task

    @tf.autograph.experimental.do_not_convert
    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        """The weight of each loss term."""
        return self._task.weights(batch)

    @tf.autograph.experimental.do_not_convert
    def __call__(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> LossParts:
        """Sums of losses and metrics."""
        outputs = self._task.outputs(model, batch, training=training, dropout_key=dropout_key)
        return self._task.loss_parts(outputs, batch)


def cross_entropy(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Negative log probability of the targets: float32 [rows, classes], int [rows] to [rows]."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)


def weighted_hits(hits: tf.Tensor, row_weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Sum and weight of the fraction of right rows: bool [rows], float32 [rows] to two scalars."""
    right = tf.reduce_sum(tf.cast(hits, tf.float32) * row_weights)
    return right, tf.reduce_sum(row_weights)
