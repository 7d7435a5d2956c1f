"""Base of the tasks that predict labels of a text or a pair of texts."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
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
    shown_labels,
    unknown_labels,
)
from bert_tf.tasks.base.table_task import Student

_UNKNOWN = "label is not one the model knows"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelTask(Student):
    """Has a logit for each label, in order, and learns from teachers with the same labels."""

    labels: tuple[str, ...] = learned(())

    @abc.abstractmethod
    def label_sets(self, table: Table) -> Sequence[Sequence[str]]:
        """Return the labels of each row."""

    @property
    def num_logits(self) -> int:
        return len(self.labels)

    def rejecting_unknown(self, table: Table, console: Console) -> Table:
        """Reject, with warnings, rows with labels that the model does not know, once it knows any.

        Raises RowsRejected if no row is left.
        """
        known = set(self.labels)
        unknown = {
            index: names
            for index, labels in enumerate(self.label_sets(table) if known else ())
            if (names := [label for label in labels if label not in known])
        }
        if not unknown:
            return table
        lines = list(unknown_labels(_label_rows(table, unknown), self.labels))
        if len(unknown) < len(table):
            console.warn(*lines)
        faults = {
            index: (_UNKNOWN, ", ".join(map(repr, names))) for index, names in unknown.items()
        }
        return table.rejecting(faults, advice=lines[0].removeprefix(f"{table.source}: "))

    def flat_labels(self, table: Table) -> list[str]:
        return [label for labels in self.label_sets(table) for label in labels]

    def label_rows(self, table: Table) -> LabelRows:
        return _label_rows(table, dict(enumerate(self.label_sets(table))))

    def numbers(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}

    def classes(self, table: Table) -> list[str]:
        return rarest_labels(self.label_sets(table))

    def describe(self, sources: Mapping[str, Table]) -> Iterator[str]:
        rows = {name: self.label_rows(table) for name, table in sources.items()}
        yield from label_table(self.labels, rows)
        for name, table in sources.items():
            without = sum(not labels for labels in self.label_sets(table))
            if without:
                yield f"  {quantity(without, f'{name} row')} without a label"

    def order_of_logits(self, teacher: Self, path: str) -> np.ndarray:
        return order_of_labels(self.labels, teacher.labels, path)

    def served_constants(self) -> dict[str, tf.Tensor]:
        return {"labels": tf.constant(self.labels)}


def _label_rows(table: Table, labels: Mapping[int, Sequence[str]]) -> LabelRows:
    lines = [table.lines[index] for index, names in labels.items() for _ in names]
    return LabelRows(table.source, [name for names in labels.values() for name in names], lines)


def softened_divergence(
    logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float
) -> tf.Tensor:
    """T² times the KL divergence of the softmax of logits / T from that of the teacher.

    T² keeps the gradients' size for any temperature (Hinton et al. 2015, section 2). From float32
    [rows, classes] twice to float32 [rows].
    """
    student = tf.nn.log_softmax(logits / temperature, axis=-1)
    teacher = tf.nn.log_softmax(teacher_logits / temperature, axis=-1)
    divergence = tf.reduce_sum(tf.exp(teacher) * (teacher - student), axis=-1)
    return temperature**2 * divergence


def softened_binary_divergence(
    logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float
) -> tf.Tensor:
    """The same for a yes or no per label, the mean over labels: [rows, labels] to [rows]."""
    parts = []
    for sign in (1.0, -1.0):
        student = tf.math.log_sigmoid(sign * logits / temperature)
        teacher = tf.math.log_sigmoid(sign * teacher_logits / temperature)
        parts.append(tf.exp(teacher) * (teacher - student))
    return temperature**2 * tf.reduce_mean(tf.add_n(parts), axis=-1)


def order_of_labels(labels: Sequence[str], of_teacher: Sequence[str], path: str) -> np.ndarray:
    """Where a teacher has each label, int64 [labels]; UsageError if it has others."""
    if set(labels) != set(of_teacher):
        raise UsageError(
            f"--teacher {path}: knows the labels {shown_labels(of_teacher)}, the training rows "
            f"have {shown_labels(labels)}; a teacher's labels must be the same, in any order"
        )
    place = {label: number for number, label in enumerate(of_teacher)}
    return np.array([place[label] for label in labels], np.int64)
