"""Predicted sets of labels, thresholds, measures, and sections of the report page, in NumPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import TableHost
from bert_tf.tasks.base.labels import LabelMeasures, quotient
from bert_tf.tasks.base.prediction_rows import json_values
from bert_tf.tasks.base.report_sections import (
    Section,
    label_section,
    negative_logs,
    table_by_group,
    table_by_length,
    worst_rows,
)
from bert_tf.tasks.multilabel.options import MULTILABEL

if TYPE_CHECKING:
    from bert_tf.data.tables.tables import Table
    from bert_tf.tasks.base.prediction_rows import TaskResults
    from bert_tf.tasks.multilabel.task import MultiLabelTask


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
                scores[row].round(PROBABILITY_DIGITS).tolist()
                for scores, row in zip(probabilities, chosen, strict=True)
            ],
            "probabilities": probabilities,
        }


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Compute probabilities, float64, without overflow."""
    return np.exp(-np.logaddexp(0.0, -logits.astype(np.float64)))


def label_set_metrics(
    gold: np.ndarray, predicted: np.ndarray, measures: LabelMeasures
) -> dict[str, float]:
    """F1, precision and recall, accuracy of whole sets and Hamming loss, from bool [rows, labels].

    Micro averages count all labels of all rows together; macro averages are over the labels that
    occur in either argument; samples F1 is the mean over rows, 1 for a row that rightly gets no
    label. Other quotients without rows are 0.
    """
    right, given, there = (gold & predicted).sum(), predicted.sum(), gold.sum()
    macro = measures.macro_average()
    return {
        "micro_f1": float(quotient(2 * right, given + there)),
        "macro_f1": macro["f1"],
        "samples_f1": float(_row_f1(gold, predicted).mean()),
        "micro_precision": float(quotient(right, given)),
        "micro_recall": float(quotient(right, there)),
        "macro_precision": macro["precision"],
        "macro_recall": macro["recall"],
        "subset_accuracy": float((gold == predicted).all(axis=1).mean()),
        "hamming_loss": float((gold != predicted).mean()),
    }


def ranking_metrics(gold: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """Measure the ranking of rows by label, and labels by row, from bool and float [rows, labels].

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


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0


DEFAULT_THRESHOLD = 0.5


def best_threshold(probabilities: np.ndarray, gold: np.ndarray) -> float | None:
    """Return the threshold with the highest F1, midway between the probabilities it separates.

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
    """Return that of all labels with the highest micro F1; 0.5 if no row has a label."""
    found = best_threshold(probabilities.ravel(), gold.ravel())
    return DEFAULT_THRESHOLD if found is None else found


def thresholds_by_label(probabilities: np.ndarray, gold: np.ndarray) -> tuple[float, ...]:
    """Return each label's threshold by F1 (SCut of Yang 2001); without rows the global one."""
    shared = global_threshold(probabilities, gold)
    found = (best_threshold(*columns) for columns in zip(probabilities.T, gold.T, strict=True))
    return tuple(shared if threshold is None else threshold for threshold in found)


def sections(
    task: MultiLabelTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    gold = task.targets(source)["labels"]
    sets = json_values(predicted["predicted_labels"])
    names = task.gold(source)
    chosen = task.membership(sets)
    thresholds = np.broadcast_to(task.decision_thresholds or (0.5,), len(task.labels))
    yield label_section(results.report.details, more={"threshold": ("number", thresholds.tolist())})
    measures: dict[str, tuple[Any, np.ndarray]] = {
        "all labels right": ("fraction", (gold == chosen).all(axis=1)),
        "F1 of the row": ("fraction", _row_f1(gold, chosen)),
    }
    counts = gold.sum(axis=1)
    yield table_by_group(
        "By number of labels",
        "labels of the row",
        counts,
        [f"{count}" for count in range(counts.max() + 1)],
        measures,
    )
    texts = task.texts(source)
    yield table_by_length(texts, measures)
    probabilities = np.asarray(predicted["probabilities"], np.float64)
    losses = negative_logs(np.where(gold, probabilities, 1.0 - probabilities)).mean(axis=1)
    yield worst_rows(
        losses,
        (gold != chosen).any(axis=1),
        source.lines,
        texts,
        lambda row: {
            "labels": ", ".join(names[row]) or "none",
            "predicted": ", ".join(sets[row]) or "none",
            "loss": f"{losses[row]:.3f}",
        },
        note="Rows with a wrong set of labels, by the mean over labels of the negative log "
        "probability of having or not having it.",
    )


def _row_f1(gold: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """F1 of each row's labels, 1 if there are none and none are predicted; float [rows]."""
    right, of_both = (gold & chosen).sum(axis=1), gold.sum(axis=1) + chosen.sum(axis=1)
    return np.divide(2 * right, of_both, out=np.ones(len(gold)), where=of_both > 0)
