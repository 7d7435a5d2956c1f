"""Base of the tasks that predict labels of a text or a pair of texts."""

from __future__ import annotations

import abc
import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.wording import quantity, shortened
from bert_tf.data.tables.file_rows import Table
from bert_tf.tasks.base.host_task import learned
from bert_tf.tasks.base.labels import (
    LabelRows,
    label_table,
    rarest_labels,
    shown_labels,
    unknown_labels,
)
from bert_tf.tasks.base.table_task import Student

_ROWS_OF_LABELS = 20  # in fewer, labels may all differ by chance
_UNKNOWN = "label is not one the model knows"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelTask(Student):
    """Base of tasks with a logit for each label, in the order of `labels`.

    It learns from teachers with the same labels in any order.
    """

    labels: tuple[str, ...] = learned(())

    @abc.abstractmethod
    def label_sets(self, table: Table) -> Sequence[Sequence[str]]:
        """Return the labels of each row."""

    @property
    def num_logits(self) -> int:
        return len(self.labels)

    def check_labels_repeat(self, table: Table) -> None:
        """Raise InputError if no two training rows share a label, as in a column of ids."""
        counts = collections.Counter(self.flat_labels(table))
        if len(table) >= _ROWS_OF_LABELS and len(counts) >= len(table) == counts.total():
            raise InputError(
                f"{table.source}: column {self.label_column!r} holds another value in each of "
                f"{quantity(len(table), 'row')}, such as {shortened(next(iter(counts)))}, like a "
                "column of ids; name the column of labels by --label-column"
            )

    def rejecting_unknown(self, table: Table, console: Console) -> Table:
        """Reject, with warnings, rows with labels that the model does not know, once it knows any.

        Raises:
            RowsRejected: no row is left.
        """
        known = set(self.labels)
        if not known:
            return table
        unknown = {}
        for index, labels in enumerate(self.label_sets(table)):
            names = [label for label in labels if label not in known]
            if names:
                unknown[index] = names
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
    """Count the labels of some rows, given by the number of the row."""
    flat_labels: list[str] = []
    lines: list[int] = []
    for row, labels_of_row in labels.items():
        flat_labels += labels_of_row
        lines += [table.lines[row]] * len(labels_of_row)
    return LabelRows(table.source, flat_labels, lines, places=table.places)


def softened_divergence(
    logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float
) -> tf.Tensor:
    """Compute T² times the KL divergence from the teacher's softmax of logits / T.

    T² keeps the gradients' size for any temperature (Hinton et al. 2015, "Distilling the Knowledge
    in a Neural Network", section 2).

    Args:
        logits: float32 [rows, classes], of the student.
        teacher_logits: float32 [rows, classes].
        temperature: T; higher ones give small probabilities more weight.

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
    """Compute `softened_divergence` for independent labels, a yes or no each: the mean over labels.

    Args:
        logits: float32 [rows, labels], of the student.
        teacher_logits: float32 [rows, labels].
        temperature: see `softened_divergence`.

    Returns:
        float32 [rows].
    """
    parts = []
    # The probabilities of yes and of no, sigmoid(x) and sigmoid(-x).
    for sign in (1.0, -1.0):
        student = tf.math.log_sigmoid(sign * logits / temperature)
        teacher = tf.math.log_sigmoid(sign * teacher_logits / temperature)
        parts.append(tf.exp(teacher) * (teacher - student))
    return temperature**2 * tf.reduce_mean(tf.add_n(parts), axis=-1)


def order_of_labels(labels: Sequence[str], of_teacher: Sequence[str], path: str) -> np.ndarray:
    """Return where a teacher has each label.

    Args:
        labels: labels of the student.
        of_teacher: labels of the teacher, in the order of its logits.
        path: path of the teacher, for the message.

    Returns:
        int64 [labels].

    Raises:
        UsageError: the teacher has other labels.
    """
    if set(labels) != set(of_teacher):
        raise UsageError(
            f"--teacher {path}: knows the labels {shown_labels(of_teacher)}, the training rows "
            f"have {shown_labels(labels)}; a teacher's labels must be the same, in any order"
        )
    place = {label: number for number, label in enumerate(of_teacher)}
    return np.array([place[label] for label in labels], np.int64)
