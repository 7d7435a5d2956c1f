"""A classifier's measures by label, and which labels are taken for which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bert_tf.tasks.tables.label_measures import LabelMeasures


class LabelReport:
    """Precision, recall and F1 of each label, and the confusion of labels.

    Averages are over the labels that occur in gold or predictions, as `macro_f1` is.

    Args:
        gold, predicted: int [rows], at least one row.
        labels: names.
    """

    def __init__(self, gold: np.ndarray, predicted: np.ndarray, labels: Sequence[str]):
        size = len(labels)
        cells = np.bincount(gold * size + predicted, minlength=size * size)
        self._labels = labels
        self._confusion = cells.reshape(size, size)
        self._measures = LabelMeasures(
            np.diag(self._confusion),
            self._confusion.sum(axis=0),
            self._confusion.sum(axis=1),
            rows=len(gold),
            labels=labels,
        )

    def details(self) -> dict[str, Any]:
        """Entries of metrics.json.

        `confusion` has the rows by gold label and predicted label; pairs without rows are left out.
        """
        return {
            **self._measures.details(),
            "confusion": {
                label: {
                    self._labels[predicted]: int(self._confusion[gold, predicted])
                    for predicted in np.flatnonzero(self._confusion[gold]).tolist()
                }
                for gold, label in enumerate(self._labels)
                if self._confusion[gold].any()
            },
        }

    def lines(self) -> Iterator[str]:
        """A table for the console; none where there are too many labels to look at."""
        return self._measures.lines()

    def warnings(self) -> Iterator[str]:
        """Lines on labels that rows have and that are never predicted."""
        return self._measures.warnings()
