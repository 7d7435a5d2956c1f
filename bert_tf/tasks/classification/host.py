"""Labels from logits, in NumPy: for evaluation and for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.classification.calibration import log_softmax
from bert_tf.tasks.classification.options import CLASSIFICATION
from bert_tf.tasks.tables.table_host import TableHost


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationHost(TableHost):
    """See `ClassificationTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = CLASSIFICATION

    labels: tuple[str, ...]
    temperature: float = 1.0

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """See `label_predictions`."""
        return label_predictions(logits, self.labels, self.temperature)


def label_predictions(
    logits: np.ndarray, labels: Sequence[str], temperature: float
) -> dict[str, Any]:
    """The likeliest label, its probability, and those of all labels.

    Args:
        logits: float [rows, labels].
        labels: in the order of the logits.
        temperature: what logits are divided by.
    """
    probabilities = np.exp(log_softmax(logits / temperature))
    return {
        "predicted_label": [labels[choice] for choice in logits.argmax(axis=1)],
        "predicted_score": probabilities.max(axis=1),
        "probabilities": probabilities,
    }
