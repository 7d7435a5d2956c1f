"""Predicted labels and calibration in NumPy, and measures of them.

Measures are by the definitions of scikit-learn and GLUE, calibration by Guo et al. 2017.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.explained import Outputs, PlacedRow, Target, logit_target
from bert_tf.tasks.base.host_task import TableHost
from bert_tf.tasks.base.labels import LabelMeasures
from bert_tf.tasks.base.report_sections import negative_logs
from bert_tf.tasks.classification.options import CLASSIFICATION


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationHost(TableHost):
    """The task around its graph; see `ClassificationTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = CLASSIFICATION

    labels: tuple[str, ...]
    temperature: float = 1.0
    is_temperature_in_head: bool = False

    def targets(
        self, placed: PlacedRow, outputs: Outputs, predicted: Mapping[str, Any]
    ) -> list[Target]:
        label = str(predicted["predicted_label"])
        return [logit_target(outputs["logits"], self.labels.index(label), label)]

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        divisor = 1.0 if self.is_temperature_in_head else self.temperature
        probabilities = np.exp(log_softmax(logits / divisor))
        return {
            "predicted_label": [self.labels[choice] for choice in logits.argmax(axis=1)],
            "predicted_score": probabilities.max(axis=1),
            "probabilities": probabilities,
        }


def classification_metrics(gold: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Compute accuracy, macro F1 and Matthews correlation.

    Macro F1 is the mean over the classes that occur in either argument; Matthews correlation is
    Gorodkin's, 0 if one side names a single class (scikit-learn `f1_score(average="macro")`,
    `matthews_corrcoef`).

    Args:
        gold, predicted: int [rows], at least one row.
    """
    classes = int(max(gold.max(), predicted.max())) + 1
    confusion = np.bincount(gold * classes + predicted, minlength=classes * classes)
    confusion = confusion.reshape(classes, classes).astype(np.float64)
    right = np.diag(confusion)
    gold_counts = confusion.sum(axis=1)
    predicted_counts = confusion.sum(axis=0)
    rows = confusion.sum()

    occurring = gold_counts + predicted_counts > 0
    f1 = 2 * right[occurring] / (gold_counts + predicted_counts)[occurring]

    covariance = right.sum() * rows - gold_counts @ predicted_counts
    gold_variance = rows**2 - gold_counts @ gold_counts
    predicted_variance = rows**2 - predicted_counts @ predicted_counts
    scale = np.sqrt(gold_variance * predicted_variance)
    return {
        "accuracy": float(right.sum() / rows),
        "macro_f1": float(f1.mean()),
        "matthews_correlation": float(covariance / scale) if scale else 0.0,
    }


class LabelReport(LabelMeasures):
    """Measures each label, and counts confusions.

    Args:
        gold, predicted: int [rows], at least one row.
        labels: names, by number.
    """

    def __init__(self, gold: np.ndarray, predicted: np.ndarray, labels: Sequence[str]):
        size = len(labels)
        cells = np.bincount(gold * size + predicted, minlength=size * size)
        self._confusion = cells.reshape(size, size)
        super().__init__(
            np.diag(self._confusion),
            self._confusion.sum(axis=0),
            self._confusion.sum(axis=1),
            rows=len(gold),
            labels=labels,
        )

    def details(self) -> dict[str, Any]:
        """Return entries of metrics.json; `confusion` has gold label, then predicted label."""
        return {
            **super().details(),
            "confusion": {
                label: {
                    self._labels[predicted]: int(self._confusion[gold, predicted])
                    for predicted in np.flatnonzero(self._confusion[gold]).tolist()
                }
                for gold, label in enumerate(self._labels)
                if self._confusion[gold].any()
            },
        }


BINS = 15  # as in the paper
# Bounds of the search. The paper's models need 1 to 3; at a bound there is no minimum.
LOWEST_TEMPERATURE = 0.05
HIGHEST_TEMPERATURE = 20.0
_DECIMALS = 4  # of the temperature


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Compute log probabilities in float64, so that sure ones keep their digits.

    Args:
        logits: float [rows, classes].

    Returns:
        float64 [rows, classes].
    """
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def fit_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """Find the divisor of logits with the lowest negative log likelihood (section 4.2).

    The likelihood is unimodal in the temperature, so a bounded search over its logarithm finds it.
    Without a minimum, as when all rows are right, it is a bound of the search.

    Args:
        logits: float [rows, classes], of evaluation rows.
        labels: int [rows].
    """
    from scipy.optimize import minimize_scalar  # only calibration needs it

    minimum = minimize_scalar(
        lambda power: negative_log_likelihood(log_softmax(logits / np.exp(power)), labels),
        bounds=(np.log(LOWEST_TEMPERATURE), np.log(HIGHEST_TEMPERATURE)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return round(float(np.exp(minimum.x)), _DECIMALS)


def negative_log_likelihood(log_probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Average -log p of the labels over the rows, in nats.

    Args:
        log_probabilities: float [rows, classes].
        labels: int [rows].
    """
    return float(-log_probabilities[np.arange(len(labels)), labels].mean())


def reliability_bins(confidence: np.ndarray, right: np.ndarray) -> list[dict[str, float]]:
    """Return the bins of a reliability diagram that hold rows: (0, 1/15], (1/15, 2/15], ….

    Args:
        confidence: float [rows], probability of the predicted label.
        right: bool [rows].

    Returns:
        For each bin `rows`, mean `confidence` and `accuracy`.
    """
    numbers = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    return [
        {
            "rows": int(rows.sum()),
            "confidence": float(confidence[rows].mean()),
            "accuracy": float(right[rows].mean()),
        }
        for rows in (numbers == number for number in np.unique(numbers))
    ]


def expected_calibration_error(bins: list[dict[str, float]]) -> float:
    """Average the distance of accuracy and confidence over the rows of all bins (section 3)."""
    distances = [bin_["rows"] * abs(bin_["accuracy"] - bin_["confidence"]) for bin_ in bins]
    return sum(distances) / sum(bin_["rows"] for bin_ in bins)


class CalibrationReport:
    """Measures calibration with and without the temperature.

    Args:
        probabilities: float [rows, classes], of logits divided by the temperature.
        labels: int [rows].
        temperature: the divisor; 1 for none.
    """

    def __init__(self, probabilities: np.ndarray, labels: np.ndarray, temperature: float):
        # Logits up to a constant in each row, which does not change their softmax.
        logs = -negative_logs(probabilities)
        self._temperature = temperature
        self._calibrated = _measures(logs, labels)
        self._uncalibrated = _measures(log_softmax(logs * temperature), labels)

    def details(self) -> dict[str, Any]:
        before = {} if self._temperature == 1.0 else {"uncalibrated": self._uncalibrated}
        return {"temperature": self._temperature, **self._calibrated, **before}

    def line(self) -> str:
        before = self._uncalibrated["expected_calibration_error"]
        after = self._calibrated["expected_calibration_error"]
        return (
            f"calibration: temperature {self._temperature:g}; expected calibration error "
            f"{before:.4f} without it, {after:.4f} with it"
        )

    def warnings(self) -> Iterator[str]:
        if self._temperature in (LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE):
            yield (
                f"calibration: the temperature {self._temperature:g} is at its limit, so the "
                "evaluation rows do not determine it: all are predicted correctly, or nothing was "
                "learned; do not rely on the probabilities"
            )


def _measures(logs: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    bins = reliability_bins(np.exp(logs.max(axis=1)), logs.argmax(axis=1) == labels)
    return {
        "expected_calibration_error": expected_calibration_error(bins),
        "negative_log_likelihood": negative_log_likelihood(logs, labels),
        "bins": bins,
    }
