"""Cross-entropy with class weights and label smoothing, as PyTorch's `CrossEntropyLoss` has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.tasks.base.losses import cross_entropy


def smoothed_cross_entropy(
    logits: tf.Tensor, labels: tf.Tensor, *, class_weights: Sequence[float], smoothing: float
) -> tf.Tensor:
    """The loss of each row: float32 [rows, classes], int32 [rows] to [rows].

    Smoothing moves that fraction of the target to all classes alike (Szegedy et al. 2016), where
    each weighs as its class does. A mean over rows divides by the sum of `weights_of_labels`.

    Args:
        logits, labels: of the rows.
        class_weights: of the classes; () for 1 each.
        smoothing: from 0 to below 1.
    """
    losses = cross_entropy(logits, labels) * weights_of_labels(labels, class_weights)
    if not smoothing:
        return losses
    negative_log_probabilities = -tf.nn.log_softmax(logits, axis=-1)
    if class_weights:
        negative_log_probabilities *= tf.constant(class_weights, tf.float32)
    uniform = tf.reduce_mean(negative_log_probabilities, axis=-1)
    return (1.0 - smoothing) * losses + smoothing * uniform


def weights_of_labels(labels: tf.Tensor, class_weights: Sequence[float]) -> tf.Tensor:
    """The weight of each row's class: int32 [rows] to float32 [rows]."""
    if not class_weights:
        return tf.ones_like(labels, tf.float32)
    return tf.gather(tf.constant(class_weights, tf.float32), labels)


def loss_without_texts(
    labels: np.ndarray,
    row_weights: np.ndarray,
    *,
    classes: int,
    class_weights: Sequence[float],
    smoothing: float,
) -> float:
    """The lowest mean loss of one prediction for all rows: the entropy of their targets.

    Of labels that are equally frequent that is ln(classes).

    Args:
        labels: int [rows], at least one with a weight.
        row_weights: float [rows].
        classes: how many there are.
        class_weights, smoothing: of the loss.
    """
    weights = np.array(class_weights or np.ones(classes), np.float64)
    rows = np.bincount(labels, weights=row_weights, minlength=classes)
    targets = (1.0 - smoothing) * rows * weights + smoothing * rows.sum() * weights / classes
    used = targets[targets > 0]
    return float(-(used * np.log(used / used.sum())).sum() / (rows * weights).sum())
