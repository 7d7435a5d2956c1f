"""Predicted sets of labels, their thresholds and measures, in NumPy."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import TableHost
from bert_tf.tasks.base.labels import LabelMeasures, quotient
from bert_tf.tasks.multilabel.options import MULTILABEL

SCORE_DIGITS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiLabelHost(TableHost):
    """See `MultiLabelTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = MULTILABEL

    labels: tuple[str, ...]
    decision_thresholds: tuple[float, ...] = ()

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        probabilities = sigmoid(logits)
        is_there = probabilities >= np.array(self.decision_thresholds or (DEFAULT_THRESHOLD,))
        chosen = [np.flatnonzero(row).tolist() for row in is_there]
        return {
            "predicted_labels": [[self.labels[number] for number in row] for row in chosen],
            "predicted_scores": [
                scores[row].round(SCORE_DIGITS).tolist()
                for scores, row in zip(probabilities, chosen, strict=True)
            ],
            "probabilities": probabilities,
        }


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Computes probabilities, float64, without overflow."""
    return np.exp(-np.logaddexp(0.0, -logits.astype(np.float64)))


def label_set_metrics(
    gold: np.ndarray, predicted: np.ndarray, measures: LabelMeasures
) -> dict[str, float]:
    """F1, precision and recall, accuracy of whole sets and Hamming loss, from bool [rows, labels].

    Micro averages count all labels of all rows together; macro averages are over the labels that
    occur in either argument; samples F1 is the mean over rows, 1 for a row that rightly gets no
    label. Other quotients without rows are 0.
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
    """Measures the ranking of rows by label, and labels by row, from bool and float [rows, labels].

    Mean average precision is over the labels that some row has, ROC AUC over those that some row
    has and some row lacks; each is 0 if there is no such label.
    """
    from sklearn.metrics import (  # engines load this file for its predictions
        average_precision_score,
        coverage_error,
        label_ranking_average_precision_score,
        roc_auc_score,
    )

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


DEFAULT_THRESHOLD = 0.5


def best_threshold(probabilities: np.ndarray, gold: np.ndarray) -> float | None:
    """Returns the threshold with the highest F1, midway between the probabilities it separates.

    Of several, the one nearest to 0.5; None if F1 is 0 for all. From float and bool [n].
    """
    if not gold.any():
        return None
    order = np.argsort(-probabilities, kind="stable")
    falling = probabilities[order].astype(np.float64)
    right = np.cumsum(gold[order])
    f1 = 2 * right / (np.arange(1, len(order) + 1) + gold.sum())
    following = np.append(falling[1:], 0.0)
    is_cut = np.append(falling[:-1] > falling[1:], True)
    thresholds, f1 = (falling + following)[is_cut] / 2, f1[is_cut]
    best = thresholds[f1 == f1.max()]
    return float(best[np.abs(best - DEFAULT_THRESHOLD).argmin()])


def global_threshold(probabilities: np.ndarray, gold: np.ndarray) -> float:
    """Returns that of all labels with the highest micro F1; 0.5 if no row has a label."""
    found = best_threshold(probabilities.ravel(), gold.ravel())
    return DEFAULT_THRESHOLD if found is None else found


def thresholds_by_label(probabilities: np.ndarray, gold: np.ndarray) -> tuple[float, ...]:
    """Returns each label's threshold by F1 (SCut of Yang 2001); without rows the global one."""
    shared = global_threshold(probabilities, gold)
    found = (best_threshold(*columns) for columns in zip(probabilities.T, gold.T, strict=True))
    return tuple(shared if threshold is None else threshold for threshold in found)
