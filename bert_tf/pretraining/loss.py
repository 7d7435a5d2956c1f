"""The masked-LM and next-sentence losses of BERT pretraining."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.layers.implementation import implementation
from bert_tf.training.protocols import Batch, LossParts


class PretrainingLoss:
    """Cross-entropy of masked tokens plus that of sequences (Devlin et al. 2019, A.2).

    Like run_pretraining.py of google-research/bert, but the masked-LM mean is over all masked
    positions of the global batch, however it is distributed over replicas.

    Args:
        pair_task: "nsp" or "sop" names the loss of the sequences' labels; "none" leaves it out, and
            the next-sentence head does not learn.
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
        of_labels = implementation().cross_entropy
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
    """Return the sums of loss, hits and weights, float32 []; arguments are float32 [...]."""
    return (tf.reduce_sum(losses * weights), tf.reduce_sum(right * weights), tf.reduce_sum(weights))


def _sequence_weights(batch: Batch) -> tf.Tensor:
    """Return 1 for sequences and 0 for padding: float32 [n], packed [n, sequences]."""
    if "next_sentence_weights" in batch:
        return batch["next_sentence_weights"]
    return tf.cast(batch["input_mask"][:, 0], tf.float32)
