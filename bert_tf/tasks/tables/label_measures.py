"""Precision, recall and F1 of each label, as scikit-learn's `classification_report` has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bert_tf.base.wording import quantity
from bert_tf.data.tables.cells import shortened
from bert_tf.tasks.tables.labels import shown_label

_MEASURES = ("precision", "recall", "f1")
_SHOWN_LABELS = 20
_SHOWN_WARNINGS = 5


class LabelMeasures:
    """Measures by label, and their averages.

    A quotient without rows is 0. Averages are over the labels that occur in gold or predictions;
    0 where none does.

    Args:
        right: rows of each label that are predicted to have it, int [labels].
        predicted: rows that are predicted to have it.
        support: rows that have it.
        rows: of the file.
        labels: names.
    """

    def __init__(
        self,
        right: np.ndarray,
        predicted: np.ndarray,
        support: np.ndarray,
        *,
        rows: int,
        labels: Sequence[str],
    ):
        self._labels = labels
        self._rows = rows
        self._support, self._predicted = support, predicted
        self._measures = {
            "precision": quotient(right, predicted),
            "recall": quotient(right, support),
            "f1": quotient(2 * right, support + predicted),
        }

    def macro_average(self) -> dict[str, float]:
        """The mean of each measure over labels."""
        return self._average(self._support + self._predicted > 0)

    def details(self) -> dict[str, Any]:
        """Entries of metrics.json."""
        return {
            "labels": {
                label: {**self._measures_of(number), "support": int(self._support[number])}
                for number, label in enumerate(self._labels)
            },
            "macro_average": self.macro_average(),
            "weighted_average": self._average(self._support),
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
                f"{self._support[number]:,} of {quantity(self._rows, 'row')} have it"
            )
        if len(never) > _SHOWN_WARNINGS:
            yield f"{quantity(len(never) - _SHOWN_WARNINGS, 'more label')} are never predicted"

    def _average(self, weights: np.ndarray) -> dict[str, float]:
        total = max(1, int(weights.sum()))
        return {name: float(values @ weights / total) for name, values in self._measures.items()}

    def _measures_of(self, number: int) -> dict[str, float]:
        return {name: float(self._measures[name][number]) for name in _MEASURES}


def quotient(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Elementwise `part / whole`, 0 where `whole` is 0."""
    return np.divide(part, whole, out=np.zeros(np.shape(part)), where=whole > 0)
