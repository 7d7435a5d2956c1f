"""Measures of a classifier, by the definitions of scikit-learn and GLUE, as fractions of 1."""

from __future__ import annotations

import numpy as np


def classification_metrics(gold: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Accuracy, macro F1 and Matthews correlation.

    Macro F1 is the mean over the classes that occur in either argument; a class that is never
    right has an F1 of 0. Matthews correlation is Gorodkin's for any number of classes, 0 where one
    side names a single class (scikit-learn `f1_score(average="macro")`, `matthews_corrcoef`).

    Args:
        gold, predicted: int [rows], at least one row.
    """
    classes = int(max(gold.max(), predicted.max())) + 1
    confusion = np.bincount(gold * classes + predicted, minlength=classes * classes)
    confusion = confusion.reshape(classes, classes).astype(np.float64)
    right = np.diag(confusion)
    gold_counts, predicted_counts = confusion.sum(axis=1), confusion.sum(axis=0)
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
