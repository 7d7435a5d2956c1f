"""Measures of sets of labels, by the definitions of scikit-learn, as fractions of 1."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    coverage_error,
    label_ranking_average_precision_score,
    roc_auc_score,
)

from bert_tf.tasks.tables.label_measures import LabelMeasures, quotient


def label_set_metrics(
    gold: np.ndarray, predicted: np.ndarray, measures: LabelMeasures
) -> dict[str, float]:
    """F1, precision and recall, accuracy of whole sets and Hamming loss.

    Micro averages count all labels of all rows together; macro averages are over the labels that
    occur in either argument; samples F1 is the mean over rows, 1 for a row that rightly gets no
    label. Other quotients without rows are 0.

    Args:
        gold, predicted: bool [rows, labels], at least one row.
        measures: of the labels.
    """
    right = (gold & predicted).sum(axis=1)
    given, there = predicted.sum(axis=1), gold.sum(axis=1)
    by_row = np.where(given + there == 0, 1.0, quotient(2 * right, given + there))
    macro = measures.macro_average()
    return {
        "micro_f1": _fraction(2 * right.sum(), given.sum() + there.sum()),
        "macro_f1": macro["f1"],
        "samples_f1": float(by_row.mean()),
        "micro_precision": _fraction(right.sum(), given.sum()),
        "micro_recall": _fraction(right.sum(), there.sum()),
        "macro_precision": macro["precision"],
        "macro_recall": macro["recall"],
        "subset_accuracy": float((gold == predicted).all(axis=1).mean()),
        "hamming_loss": float((gold != predicted).mean()),
    }


def ranking_metrics(gold: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """How well probabilities rank rows by label, and labels by row; thresholds do not matter.

    Mean average precision is over the labels that some row has, ROC AUC over those that some row
    has and some row lacks; each is 0 where there is no such label.

    Args:
        gold: bool [rows, labels], at least one row.
        probabilities: float [rows, labels].
    """
    columns = list(zip(gold.T, probabilities.T, strict=True))
    average_precisions = [
        average_precision_score(there, scores) for there, scores in columns if there.any()
    ]
    areas = [roc_auc_score(there, scores) for there, scores in columns if there.any() > there.all()]
    return {
        "mean_average_precision": _mean(average_precisions),
        "roc_auc": _mean(areas),
        "label_ranking_average_precision": float(
            label_ranking_average_precision_score(gold, probabilities)
        ),
        "coverage_error": float(coverage_error(gold, probabilities)),
    }


def _fraction(part: np.integer, whole: np.integer) -> float:
    return float(part / whole) if whole else 0.0


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0
