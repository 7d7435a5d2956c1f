"""Rows whose label is likely wrong, by confident learning (Northcutt et al. 2021).

The definitions are those of cleanlab: `find_label_issues(filter_by="confident_learning")`.
"""

from __future__ import annotations

import numpy as np

_ROUNDING = 1e-6  # which cleanlab allows for when it compares probabilities with thresholds


def confident_thresholds(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """For each class the mean probability of it over the rows that have its label (section 3.1).

    A class without rows has the threshold 2, which no probability reaches.

    Args:
        labels: int [rows].
        probabilities: float [rows, classes], of models that were not trained on these rows.

    Returns:
        float64 [classes].
    """
    classes = probabilities.shape[1]
    own = self_confidence(labels, probabilities)
    rows = np.bincount(labels, minlength=classes)
    sums = np.bincount(labels, weights=own, minlength=classes)
    means = np.divide(sums, rows, out=np.full(classes, 2.0), where=rows > 0)
    return np.maximum(means, 2 * _ROUNDING)


def self_confidence(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """The probability of each row's own label, float64 [rows]."""
    return probabilities[np.arange(len(labels)), labels].astype(np.float64)


def doubtful_rows(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """The rows off the diagonal of the confident joint, the least self-confident first.

    A row is confidently of a class if its probability reaches the class's threshold; of several
    such classes it is the likeliest. Rows whose likeliest class is their label are not doubted.

    Args:
        labels, probabilities: as of `confident_thresholds`.

    Returns:
        int64 row numbers.
    """
    is_confident = probabilities >= confident_thresholds(labels, probabilities) - _ROUNDING
    likeliest = probabilities.argmax(axis=1)
    reached = is_confident.sum(axis=1)
    confident_class = np.where(reached > 1, likeliest, is_confident.argmax(axis=1))
    doubted = np.flatnonzero((reached > 0) & (confident_class != labels) & (likeliest != labels))
    order = np.argsort(self_confidence(labels, probabilities)[doubted], kind="stable")
    return doubted[order]
