"""Predicted sets of labels, thresholds and measures, in NumPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.explained import Outputs, PlacedRow, Target, logit_target
from bert_tf.tasks.base.host_task import TableHost
from bert_tf.tasks.base.labels import LabelMeasures, quotient
from bert_tf.tasks.multilabel.options import MULTILABEL


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiLabelHost(TableHost):
    """The task around its graph; see `MultiLabelTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = MULTILABEL

    labels: tuple[str, ...]
    decision_thresholds: tuple[float, ...] = ()

    def targets(
        self, placed: PlacedRow, outputs: Outputs, predicted: Mapping[str, Any]
    ) -> list[Target]:
        logits = outputs["logits"]
        return [logit_target(logits, place, label) for place, label in enumerate(self.labels)]

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        probabilities = sigmoid(logits)
        is_there = probabilities >= np.array(self.decision_thresholds or (DEFAULT_THRESHOLD,))
        chosen = [np.flatnonzero(row).tolist() for row in is_there]
        return {
            "predicted_labels": [[self.labels[number] for number in row] for row in chosen],
            "predicted_scores": [
                scores[row].round(PROBABILITY_DIGITS).tolist()
                for scores, row in zip(probabilities, chosen, strict=True)
            ],
            "probabilities": probabilities,
        }


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Compute probabilities, float64 [...], from logits of any shape, without overflow."""
    return np.exp(-np.logaddexp(0.0, -logits.astype(np.float64)))


def label_set_metrics(
    gold: np.ndarray, predicted: np.ndarray, measures: LabelMeasures
) -> dict[str, float]:
    """Compute F1, precision and recall, accuracy of whole sets and Hamming loss.

    Micro averages count all labels of all rows together; macro averages are over the labels that
    occur in either argument; samples F1 is the mean over rows, 1 for a row that rightly gets no
    label. Other quotients without rows are 0 (scikit-learn's definitions).

    Args:
        gold, predicted: bool [rows, labels].
        measures: measures of each label, for the macro averages.
    """
    right = (gold & predicted).sum()
    assigned = predicted.sum()
    there = gold.sum()
    macro = measures.macro_average()
    return {
        "micro_f1": float(quotient(2 * right, assigned + there)),
        "macro_f1": macro["f1"],
        "samples_f1": float(row_f1(gold, predicted).mean()),
        "micro_precision": float(quotient(right, assigned)),
        "micro_recall": float(quotient(right, there)),
        "macro_precision": macro["precision"],
        "macro_recall": macro["recall"],
        "subset_accuracy": float((gold == predicted).all(axis=1).mean()),
        "hamming_loss": float((gold != predicted).mean()),
    }


def ranking_metrics(gold: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """Measure the ranking of rows by label, and of labels by row.

    Mean average precision is over the labels that some row has, ROC AUC over those that some row
    has and some row lacks; each is 0 if there is no such label.

    Args:
        gold: bool [rows, labels].
        probabilities: float [rows, labels].
    """
    by_label = _rankings(gold.T, probabilities.T)
    by_row = _rankings(gold, probabilities)
    there = gold.any(axis=0)
    everywhere = gold.all(axis=0)
    return {
        "mean_average_precision": _mean(by_label.average_precision[there]),
        "roc_auc": _mean(by_label.area[there & ~everywhere]),
        # As in scikit-learn, a row without labels is ranked well and covered by none.
        "label_ranking_average_precision": _mean(
            np.where(gold.any(axis=1), by_row.average_precision, 1.0)
        ),
        "coverage_error": _mean(by_row.coverage),
    }


class _Rankings(NamedTuple):
    """Measures of lists of scores that should rank gold items first; float64 [lists] each.

    Attributes:
        average_precision: mean over gold items of the precision at their score; 0 without any.
        area: area under the ROC curve; not defined if none or all items are gold.
        coverage: number of highest scores that include all gold items.
    """

    average_precision: np.ndarray
    area: np.ndarray
    coverage: np.ndarray


_RANKED_AT_ONCE = 4_000_000  # scores; some ten arrays of 8 bytes for each


def _rankings(gold: np.ndarray, scores: np.ndarray) -> _Rankings:
    """Rank lists of scores, bool and float [lists, scores], many at once: labels come in thousands.

    Equal scores share the last place among them for precision and coverage, as in scikit-learn,
    and the mean of their places for the area, which is the statistic of Mann and Whitney.
    """
    lists_at_once = max(1, _RANKED_AT_ONCE // max(gold.shape[1], 1))
    parts = [
        _ranked(gold[first : first + lists_at_once], scores[first : first + lists_at_once])
        for first in range(0, len(gold), lists_at_once)
    ]
    return _Rankings(*map(np.concatenate, zip(*parts, strict=True)))


def _ranked(gold: np.ndarray, scores: np.ndarray) -> _Rankings:
    """Rank lists of scores that fit the memory together; see `_rankings`.

    In the order of falling scores, equal scores form runs. `first` and `last` are the places of the
    ends of each item's run. Precision and coverage count up to `last`; the area takes the middle.
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    falling = np.take_along_axis(scores, order, axis=1)
    is_gold = np.take_along_axis(gold, order, axis=1)
    places = np.arange(gold.shape[1])
    is_new = np.ones(gold.shape, bool)
    is_new[:, 1:] = falling[:, 1:] < falling[:, :-1]
    is_last = np.roll(is_new, -1, axis=1)  # of equal scores; the first of a list is new
    first = np.maximum.accumulate(np.where(is_new, places, 0), axis=1)
    backwards = np.where(is_last, places, places[-1])[:, ::-1]
    last = np.minimum.accumulate(backwards, axis=1)[:, ::-1]

    wanted = is_gold.sum(axis=1)
    found_until = np.cumsum(is_gold, axis=1)
    precision = np.take_along_axis(found_until, last, axis=1) / (last + 1)
    others = gold.shape[1] - wanted
    # Number of pairs of a gold item and another item in which the gold one ranks behind.
    mean_places = np.where(is_gold, (first + last) / 2, 0).sum(axis=1)
    behind = mean_places - wanted * (wanted - 1) / 2
    return _Rankings(
        average_precision=np.where(is_gold, precision, 0).sum(axis=1) / np.maximum(wanted, 1),
        area=1 - behind / np.maximum(wanted * others, 1),
        coverage=np.where(is_gold, last + 1, 0).max(axis=1).astype(np.float64),
    )


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


DEFAULT_THRESHOLD = 0.5


def best_threshold(probabilities: np.ndarray, gold: np.ndarray) -> float | None:
    """Return the threshold with the highest F1, midway between the probabilities it separates.

    All thresholds are tried at once: in the order of falling probabilities, a cut after k of them
    predicts k, and the running sum of gold is the number of right ones among these. There is no cut
    between equal probabilities.

    Args:
        probabilities: float [n].
        gold: bool [n].

    Returns:
        Of several thresholds the one nearest to 0.5; None if F1 is 0 for all.
    """
    if not gold.any():
        return None
    order = np.argsort(-probabilities, kind="stable")
    falling = probabilities[order].astype(np.float64)
    right = np.cumsum(gold[order])
    # 2 * right / (predicted + gold), for each number of predicted ones.
    f1 = 2 * right / (np.arange(1, len(order) + 1) + gold.sum())
    following = np.append(falling[1:], 0.0)
    is_cut = np.append(falling[:-1] > falling[1:], True)
    thresholds = (falling + following)[is_cut] / 2
    f1 = f1[is_cut]
    best = thresholds[f1 == f1.max()]
    return float(best[np.abs(best - DEFAULT_THRESHOLD).argmin()])


def global_threshold(probabilities: np.ndarray, gold: np.ndarray) -> float:
    """Return the threshold of all labels with the highest micro F1; 0.5 if no row has a label.

    Args:
        probabilities: float [rows, labels].
        gold: bool [rows, labels].
    """
    best = best_threshold(probabilities.ravel(), gold.ravel())
    return DEFAULT_THRESHOLD if best is None else best


def thresholds_by_label(probabilities: np.ndarray, gold: np.ndarray) -> tuple[float, ...]:
    """Return each label's threshold by F1 (SCut of Yang 2001); without rows the global one.

    Args:
        probabilities: float [rows, labels].
        gold: bool [rows, labels].
    """
    shared = global_threshold(probabilities, gold)
    best = (best_threshold(*columns) for columns in zip(probabilities.T, gold.T, strict=True))
    return tuple(shared if threshold is None else threshold for threshold in best)


def row_f1(gold: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return F1 of each row's labels, 1 if there are none and none are predicted; float [rows]."""
    right = (gold & chosen).sum(axis=1)
    of_both = gold.sum(axis=1) + chosen.sum(axis=1)
    return np.divide(2 * right, of_both, out=np.ones(len(gold)), where=of_both > 0)
