"""The sections of a page on labels: confusions, certainty of the model, and worst rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.base.histograms import confidence_histogram
from bert_tf.tasks.base.report_sections import (
    MatrixSection,
    PlotSection,
    Section,
    TableSection,
    label_section,
    negative_logs,
    table_by_length,
    worst_rows,
)
from bert_tf.tasks.profile.thresholds import threshold_section

if TYPE_CHECKING:
    from bert_tf.data.tables.file_rows import Table
    from bert_tf.tasks.base.prediction_rows import TaskResults
    from bert_tf.tasks.classification.task import ClassificationTask


_MATRIX_LABELS = 20  # rows and columns of the matrix
_MOST_CONFUSIONS = 20  # rows of the table


def sections(
    task: ClassificationTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    """Yield the sections of an evaluation's page, see `TaskDeclaration.page`."""
    gold = task.label_numbers(task.gold(source))
    chosen = task.label_numbers(predicted["predicted_label"])
    texts = task.texts(source)
    yield label_section(results.report.details)
    yield from _confusions(task, gold, chosen)
    yield _calibration(results.report.details["calibration"])
    yield confidence_histogram(
        predicted["predicted_score"],
        gold != chosen,
        note="A model that knows when it is wrong has its wrong rows on the left.",
    )
    score = np.asarray(predicted["predicted_score"], np.float64).round(PROBABILITY_DIGITS)
    yield threshold_section(score, gold == chosen)
    yield table_by_length(
        texts,
        {
            "accuracy": ("fraction", gold == chosen),
            "mean confidence": ("fraction", np.asarray(predicted["predicted_score"], float)),
        },
        title="Accuracy by length",
    )
    of_label = np.asarray(predicted["probabilities"])[np.arange(len(gold)), gold]
    losses = negative_logs(of_label)
    yield worst_rows(
        np.where(gold != chosen, losses, -1.0),
        gold != chosen,
        source.all_places,
        texts,
        lambda row: {
            "label": task.labels[gold[row]],
            "predicted": task.labels[chosen[row]],
            "probability of the label": f"{of_label[row]:.4f}",
            "of the prediction": f"{predicted['predicted_score'][row]:.4f}",
            "loss": f"{losses[row]:.3f}",
        },
        note="Wrongly predicted rows by loss, the negative log probability of their label. The "
        "first ones often have a wrong label.",
    )


def _confusions(
    task: ClassificationTask, gold: np.ndarray, chosen: np.ndarray
) -> Iterator[Section]:
    size = len(task.labels)
    pairs, counts = np.unique(gold.astype(np.int64) * size + chosen, return_counts=True)
    rows, columns = np.divmod(pairs, size)
    frequent = np.argsort(-np.bincount(gold, minlength=size), kind="stable")[:_MATRIX_LABELS]
    kept = np.sort(frequent)
    place = np.full(size, -1)
    place[kept] = np.arange(len(kept))
    inside = (place[rows] >= 0) & (place[columns] >= 0)
    table = np.zeros((len(kept), len(kept)), np.int64)
    table[place[rows[inside]], place[columns[inside]]] = counts[inside]
    names = [task.labels[label] for label in kept]
    yield MatrixSection(
        title="Confusion",
        row_title="label",
        column_title="predicted",
        rows=names,
        columns=names,
        counts=table,
        note=f"The {len(kept)} most frequent of {size:,} labels." if len(kept) < size else "",
    )
    wrong = np.flatnonzero(rows != columns)
    if size <= 2 or not len(wrong):
        return
    of_label = np.bincount(gold, minlength=size)
    order = wrong[np.argsort(-counts[wrong], kind="stable")][:_MOST_CONFUSIONS]
    yield TableSection(
        title="Most frequent confusions",
        columns=(
            ("label", "text"),
            ("predicted", "text"),
            ("rows", "count"),
            ("of the label's rows", "fraction"),
        ),
        rows=[
            [
                task.labels[rows[pair]],
                task.labels[columns[pair]],
                int(counts[pair]),
                float(counts[pair] / of_label[rows[pair]]),
            ]
            for pair in order
        ],
    )


def _calibration(details: Mapping[str, Any]) -> PlotSection:
    bins = details["bins"]
    counts = np.array([bin_["rows"] for bin_ in bins], float)
    error = details["expected_calibration_error"]
    before = details.get("uncalibrated")
    scaled = ""
    if before is not None:
        scaled = (
            f" Logits are divided by a temperature of {details['temperature']:g}; without it the "
            f"error would be {before['expected_calibration_error']:.4f}."
        )
    return PlotSection(
        title="Calibration",
        x_title="mean confidence",
        y_title="accuracy",
        x=np.array([bin_["confidence"] for bin_ in bins]),
        y=np.array([bin_["accuracy"] for bin_ in bins]),
        weights=counts,
        bounds=(0.0, 1.0),
        has_diagonal=True,
        table=TableSection(
            title="Bins of confidence",
            columns=(
                ("rows", "count"),
                ("mean confidence", "fraction"),
                ("accuracy", "fraction"),
            ),
            rows=[[bin_["rows"], bin_["confidence"], bin_["accuracy"]] for bin_ in bins],
        ),
        note=f"Expected calibration error {error:.4f}, over 15 bins of the probability of the "
        "predicted label; areas are proportional to rows. Below the diagonal the model is "
        f"overconfident.{scaled}",
    )
