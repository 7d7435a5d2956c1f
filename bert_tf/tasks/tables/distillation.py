"""What a student of a teacher's predictions learns: their losses, and which logit is which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import UsageError
from bert_tf.tasks.tables.labels import shown_labels


def softened_divergence(
    logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float
) -> tf.Tensor:
    """Kullback-Leibler divergence of the student's softmax from the teacher's, times T².

    Both are of logits divided by the temperature T. The factor keeps the gradients' size for any
    temperature (Hinton et al. 2015, section 2).

    Args:
        logits, teacher_logits: float32 [rows, classes].
        temperature: above 0.

    Returns:
        float32 [rows].
    """
    student = tf.nn.log_softmax(logits / temperature, axis=-1)
    teacher = tf.nn.log_softmax(teacher_logits / temperature, axis=-1)
    divergence = tf.reduce_sum(tf.exp(teacher) * (teacher - student), axis=-1)
    return temperature**2 * divergence


def softened_binary_divergence(
    logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float
) -> tf.Tensor:
    """The same for a yes or no for each label, the mean over labels: [rows, labels] to [rows]."""
    parts = []
    for sign in (1.0, -1.0):
        student = tf.math.log_sigmoid(sign * logits / temperature)
        teacher = tf.math.log_sigmoid(sign * teacher_logits / temperature)
        parts.append(tf.exp(teacher) * (teacher - student))
    return temperature**2 * tf.reduce_mean(tf.add_n(parts), axis=-1)


def order_of_labels(labels: Sequence[str], of_teacher: Sequence[str], path: str) -> np.ndarray:
    """Where a teacher has each label, int64 [labels].

    Raises:
        UsageError: it has others.
    """
    if set(labels) != set(of_teacher):
        raise UsageError(
            f"--teacher {path}: knows the labels {shown_labels(of_teacher)}, the training rows "
            f"have {shown_labels(labels)}; a teacher's labels must be the same, in any order"
        )
    place = {label: number for number, label in enumerate(of_teacher)}
    return np.array([place[label] for label in labels], np.int64)
