"""Temperature scaling, and how far probabilities are from frequencies (Guo et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

BINS = 15  # as in the paper
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 20.0
_DECIMALS = 4
_LEAST_PROBABILITY = float(np.finfo(np.float32).tiny)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log probabilities: float [rows, classes] to float64 [rows, classes]."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def fit_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """The divisor of logits with the lowest negative log likelihood of the labels (section 4.2).

    Rows that are all predicted right have none, since lower is always better; neither do rows on
    which the logits say nothing. They get one of the bounds.

    Args:
        logits: float [rows, classes].
        labels: int [rows].
    """
    from scipy.optimize import minimize_scalar  # of no use to those who do not calibrate

    found = minimize_scalar(
        lambda power: negative_log_likelihood(log_softmax(logits / np.exp(power)), labels),
        bounds=(np.log(LOWEST_TEMPERATURE), np.log(HIGHEST_TEMPERATURE)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return round(float(np.exp(found.x)), _DECIMALS)


def negative_log_likelihood(log_probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean over the rows, in nats: float [rows, classes], int [rows]."""
    return float(-log_probabilities[np.arange(len(labels)), labels].mean())


def reliability_bins(confidence: np.ndarray, right: np.ndarray) -> list[dict[str, float]]:
    """The bins of a reliability diagram that hold rows: (0, 1/15], (1/15, 2/15], ….

    Args:
        confidence: float [rows], the probability of the predicted label.
        right: bool [rows].

    Returns:
        `rows`, mean `confidence` and `accuracy` of each, the least confident first.
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
    """Mean distance of confidence and accuracy over the rows of `reliability_bins`."""
    distances = [bin_["rows"] * abs(bin_["accuracy"] - bin_["confidence"]) for bin_ in bins]
    return sum(distances) / sum(bin_["rows"] for bin_ in bins)


class CalibrationReport:
    """How well the probabilities of rows are calibrated, and how well without the temperature.

    Args:
        probabilities: float [rows, classes], of logits divided by the temperature.
        labels: int [rows].
        temperature: 1 where there is no calibration.
    """

    def __init__(self, probabilities: np.ndarray, labels: np.ndarray, temperature: float):
        # Logits but for a constant in each row, which a softmax does not see.
        logs = np.log(np.maximum(probabilities.astype(np.float64), _LEAST_PROBABILITY))
        self._temperature = temperature
        self._calibrated = _measures(logs, labels)
        self._uncalibrated = _measures(log_softmax(logs * temperature), labels)

    def details(self) -> dict[str, Any]:
        """The entry of metrics.json; what it was without the temperature, where there is one."""
        before = {} if self._temperature == 1.0 else {"uncalibrated": self._uncalibrated}
        return {"temperature": self._temperature, **self._calibrated, **before}

    def line(self) -> str:
        """A line for the console."""
        before, after = (
            measures["expected_calibration_error"]
            for measures in (self._uncalibrated, self._calibrated)
        )
        return (
            f"calibration: temperature {self._temperature:g}; expected calibration error "
            f"{before:.4f} without it, {after:.4f} with it"
        )

    def warnings(self) -> Iterator[str]:
        """A line where the temperature is a bound of the search."""
        if self._temperature in (LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE):
            yield (
                f"calibration: the temperature {self._temperature:g} is a bound, so the evaluation "
                "rows do not determine it: all are predicted right, or nothing was learned; the "
                "probabilities mean little"
            )


def _measures(logs: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    bins = reliability_bins(np.exp(logs.max(axis=1)), logs.argmax(axis=1) == labels)
    return {
        "expected_calibration_error": expected_calibration_error(bins),
        "negative_log_likelihood": negative_log_likelihood(logs, labels),
        "bins": bins,
    }
