"""Base of the tasks that predict labels of a text or a pair of texts."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity
from bert_tf.data.tables.tables import Table
from bert_tf.tasks.base.host_task import learned
from bert_tf.tasks.base.labels import (
    LabelRows,
    label_table,
    rarest_labels,
    reject_unknown_labels,
    shown_labels,
)
from bert_tf.tasks.base.table_task import TableTask
from bert_tf.tasks.base.task import Student


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelTask(TableTask, Student):
    """Has a logit for each label, and learns from teachers with the same labels.

    Attributes:
        labels: names in the order of the logits.
    """

    labels: tuple[str, ...] = learned(())

    @abc.abstractmethod
    def label_sets(self, table: Table) -> Sequence[Sequence[str]]:
        """Returns the labels of each row."""

    @property
    def num_logits(self) -> int:
        return len(self.labels)

    def rejecting_unknown(self, table: Table, console: Console) -> Table:
        """Rejects the rows with a label that the model does not know; none while it learns them.

        Raises:
            RowsRejected: no row is left.
        """
        if not self.labels:
            return table
        return reject_unknown_labels(table, self.label_sets(table), self.labels, console)

    def label_rows(self, table: Table) -> LabelRows:
        """Counts the labels of the rows."""
        pairs = [
            (label, line)
            for labels, line in zip(self.label_sets(table), table.lines, strict=True)
            for label in labels
        ]
        return LabelRows(table.source, [pair[0] for pair in pairs], [pair[1] for pair in pairs])

    def numbers(self) -> dict[str, int]:
        """Returns the logit of each label."""
        return {label: number for number, label in enumerate(self.labels)}

    def classes(self, table: Table) -> list[str]:
        """Returns the label of each row that is rarest in all rows; empty where it has none."""
        return rarest_labels(self.label_sets(table))

    def describe(self, train: Table, evaluation: Table | None) -> Iterator[str]:
        tables = [table for table in (train, evaluation) if table is not None]
        rows = [self.label_rows(table) for table in tables]
        yield from label_table(self.labels, rows[0], rows[1] if len(rows) > 1 else None)
        for name, table in zip(("training", "evaluation"), tables, strict=False):
            without = sum(not labels for labels in self.label_sets(table))
            if without:
                yield f"  {quantity(without, f'{name} row')} without a label"

    def order_of_logits(self, teacher: Self, path: str) -> np.ndarray:
        return order_of_labels(self.labels, teacher.labels, path)

    def served_constants(self) -> dict[str, tf.Tensor]:
        """`labels`, string [labels], in the order of `probabilities`."""
        return {"labels": tf.constant(self.labels)}


def softened_divergence(
    logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float
) -> tf.Tensor:
    """Computes T² times the Kullback-Leibler divergence of the softmax from that of the teacher.

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
    """Does so for a yes or no per label, the mean over labels: [rows, labels] to [rows]."""
    parts = []
    for sign in (1.0, -1.0):
        student = tf.math.log_sigmoid(sign * logits / temperature)
        teacher = tf.math.log_sigmoid(sign * teacher_logits / temperature)
        parts.append(tf.exp(teacher) * (teacher - student))
    return temperature**2 * tf.reduce_mean(tf.add_n(parts), axis=-1)


def order_of_labels(labels: Sequence[str], of_teacher: Sequence[str], path: str) -> np.ndarray:
    """Returns where a teacher has each label, int64 [labels].

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
