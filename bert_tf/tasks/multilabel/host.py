"""Sets of labels from logits, in NumPy: for evaluation and for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.multilabel.options import MULTILABEL
from bert_tf.tasks.multilabel.thresholds import DEFAULT_THRESHOLD
from bert_tf.tasks.tables.table_host import TableHost

SCORE_DIGITS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiLabelHost(TableHost):
    """See `MultiLabelTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = MULTILABEL

    labels: tuple[str, ...]
    decision_thresholds: tuple[float, ...] = ()

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """See `label_set_predictions`."""
        thresholds = self.decision_thresholds or (DEFAULT_THRESHOLD,)
        return label_set_predictions(logits, self.labels, thresholds)


def label_set_predictions(
    logits: np.ndarray, labels: Sequence[str], thresholds: Sequence[float]
) -> dict[str, Any]:
    """The labels that each row has and their probabilities, as lists, and those of all labels.

    Args:
        logits: float [rows, labels].
        labels: in the order of the logits.
        thresholds: from which probability on a row has a label: one for all, or one each.
    """
    probabilities = sigmoid(logits)
    is_there = probabilities >= np.array(thresholds)
    chosen = [np.flatnonzero(row).tolist() for row in is_there]
    return {
        "predicted_labels": [[labels[number] for number in row] for row in chosen],
        "predicted_scores": [
            scores[row].round(SCORE_DIGITS).tolist()
            for scores, row in zip(probabilities, chosen, strict=True)
        ],
        "probabilities": probabilities,
    }


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Probabilities, float64, without overflow."""
    return np.exp(-np.logaddexp(0.0, -logits.astype(np.float64)))
