"""A classifier's measures by label, as scikit-learn's `classification_report` defines them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bert_tf.base.wording import quantity
from bert_tf.data.tables.cells import shortened
from bert_tf.tasks.labels import shown_label

_MEASURES = ("precision", "recall", "f1")
_SHOWN_LABELS = 20
_SHOWN_WARNINGS = 5


class LabelReport:
    """Precision, recall and F1 of each label, and which labels are taken for which.

    A quotient without rows is 0. Averages are over the labels that occur in gold or predictions,
    as `macro_f1` is.

    Args:
        gold, predicted: int [rows], at least one row.
        labels: names.
    """

    def __init__(self, gold: np.ndarray, predicted: np.ndarray, labels: Sequence[str]):
        size = len(labels)
        cells = np.bincount(gold * size + predicted, minlength=size * size)
        self._labels = labels
        self._confusion = cells.reshape(size, size)
        self._support = self._confusion.sum(axis=1)
        self._predicted = self._confusion.sum(axis=0)
        right = np.diag(self._confusion)
        self._measures = {
            "precision": _quotient(right, self._predicted),
            "recall": _quotient(right, self._support),
            "f1": _quotient(2 * right, self._support + self._predicted),
        }

    def details(self) -> dict[str, Any]:
        """Entries of metrics.json.

        `confusion` has the rows by gold label and predicted label; pairs without rows are left out.
        """
        occurring = self._support + self._predicted > 0
        support = [int(count) for count in self._support]
        return {
            "labels": {
                label: {**self._measures_of(number), "support": support[number]}
                for number, label in enumerate(self._labels)
            },
            "macro_average": {
                name: float(values[occurring].mean()) for name, values in self._measures.items()
            },
            "weighted_average": {
                name: float(values @ self._support / self._support.sum())
                for name, values in self._measures.items()
            },
            "confusion": {
                label: {
                    self._labels[predicted]: int(self._confusion[gold, predicted])
                    for predicted in np.flatnonzero(self._confusion[gold]).tolist()
                }
                for gold, label in enumerate(self._labels)
                if support[gold]
            },
        }

    def lines(self) -> Iterator[str]:
        """A table for the console; none where there are too many labels to look at."""
        if len(self._labels) > _SHOWN_LABELS:
            return
        names = [shown_label(label) for label in self._labels]
        width = max(len(name) for name in ("label", *names))
        head = "".join(f"  {name:>9}" for name in (*_MEASURES, "rows"))
        yield f"  {'label':{width}}{head}"
        for number, name in enumerate(names):
            cells = "".join(f"  {value:9.4f}" for value in self._measures_of(number).values())
            yield f"  {name:{width}}{cells}  {self._support[number]:>9,}"

    def warnings(self) -> Iterator[str]:
        """Lines on labels that rows have and that are never predicted."""
        never = np.flatnonzero((self._support > 0) & (self._predicted == 0))
        for number in never[:_SHOWN_WARNINGS].tolist():
            yield (
                f"label {shortened(self._labels[number])} is never predicted, though "
                f"{self._support[number]:,} of {quantity(int(self._support.sum()), 'row')} have it"
            )
        if len(never) > _SHOWN_WARNINGS:
            yield f"{quantity(len(never) - _SHOWN_WARNINGS, 'more label')} are never predicted"

    def _measures_of(self, number: int) -> dict[str, float]:
        return {name: float(self._measures[name][number]) for name in _MEASURES}


def _quotient(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
