"""The masked-LM and next-sentence losses of BERT pretraining."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from bert_tf.training.protocols import Batch, LossParts


class PretrainingLoss:
    """Cross-entropy over masked positions plus that over sequences (Devlin et al. 2019, A.2).

    As run_pretraining.py of google-research/bert, but the masked-LM mean is over all masked
    positions of the global batch, however it is spread over replicas.

    `pair_task` "nsp" or "sop" names the loss of the sequences' labels; "none" has no such loss.
    """

    def __init__(self, pair_task: str = "nsp"):
        self._pair_task = pair_task

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        weights = {"mlm_loss": tf.reduce_sum(batch["masked_lm_weights"])}
        if self._pair_task != "none":
            weights[f"{self._pair_task}_loss"] = tf.reduce_sum(_sequence_weights(batch))
        return weights

    def __call__(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> LossParts:
        outputs = model(batch, training=training, dropout_key=dropout_key)
        of_labels = _fused_cross_entropy if model.is_compiled else _cross_entropy
        mlm_loss, mlm_right, mlm_weight = _weighted_sums(
            *of_labels(outputs["mlm_logits"], batch["masked_lm_ids"]), batch["masked_lm_weights"]
        )
        losses = {"mlm_loss": mlm_loss}
        metrics = {"mlm_accuracy": (mlm_right, mlm_weight)}
        if self._pair_task != "none":
            pair_loss, pair_right, pair_weight = _weighted_sums(
                *of_labels(outputs["nsp_logits"], batch["next_sentence_labels"]),
                _sequence_weights(batch),
            )
            losses[f"{self._pair_task}_loss"] = pair_loss
            metrics[f"{self._pair_task}_accuracy"] = (pair_right, pair_weight)
        return LossParts(losses=losses, metrics=metrics)


def _weighted_sums(
    losses: tf.Tensor, right: tf.Tensor, weights: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Sums of loss, hits and weights; all float32 [...]."""
    return (tf.reduce_sum(losses * weights), tf.reduce_sum(right * weights), tf.reduce_sum(weights))


def _cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Cross-entropy of every label, float32 [...], and 1 where its logit is the highest one.

    Logits are float32 [..., classes], labels int32 [...]. Five times as fast on CPUs as
    TensorFlow's own, since oneDNN only has the softmax: log-sum-exp is the highest logit minus the
    logarithm of the highest probability, which is never 0.
    """
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


def _fused_cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """As `_cross_entropy`, of operations that XLA fuses into the products before and after.

    The gradient computes probabilities again, which costs less than to write and read them.
    """
    rows = tf.reshape(logits, [-1, logits.shape[-1]])
    is_label = tf.reshape(labels, [-1, 1]) == tf.range(rows.shape[-1], dtype=labels.dtype)

    @tf.custom_gradient
    def losses_of(rows: tf.Tensor) -> tuple[Any, Callable[..., tf.Tensor]]:
        highest = tf.reduce_max(rows, axis=-1)
        log_sums = highest + tf.math.log(tf.reduce_sum(tf.exp(rows - highest[:, None]), axis=-1))
        label_logits = tf.reduce_sum(tf.where(is_label, rows, 0.0), axis=-1)

        def gradient(upstream: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
            probabilities = tf.exp(rows - log_sums[:, None])
            return (probabilities - tf.cast(is_label, tf.float32)) * upstream[:, None]

        right = tf.cast(label_logits >= highest, tf.float32)
        return (log_sums - label_logits, right), gradient

    losses, right = losses_of(rows)
    return tf.reshape(losses, tf.shape(labels)), tf.reshape(right, tf.shape(labels))


def _sequence_weights(batch: Batch) -> tf.Tensor:
    """1 for sequences, 0 for padding; float32 [n], packed [n, sequences]."""
    if "next_sentence_weights" in batch:
        return batch["next_sentence_weights"]
    return tf.cast(batch["input_mask"][:, 0], tf.float32)
