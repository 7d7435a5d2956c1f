"""The page of an evaluation of a classifier of several labels per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_tf.data.tables.tables import Table
from bert_tf.tasks.base.prediction_rows import json_values
from bert_tf.tasks.base.report_sections import (
    Example,
    ExamplesSection,
    Section,
    characters_of,
    label_section,
    length_bins,
    shown_texts,
    table_by_group,
    worst_first,
)
from bert_tf.tasks.base.task import TaskResults
from bert_tf.tasks.multilabel.task import MultiLabelTask

_LEAST_PROBABILITY = float(np.finfo(np.float32).tiny)


def sections(
    task: MultiLabelTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    gold = task.targets(source)["labels"]
    sets = json_values(predicted["predicted_labels"])
    names = task.gold(source)
    chosen = np.zeros_like(gold)
    number = {label: place for place, label in enumerate(task.labels)}
    for row, labels in enumerate(sets):
        chosen[row, [number[label] for label in labels]] = True
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
    groups, lengths = length_bins(characters_of(texts))
    yield table_by_group("By length", "characters", groups, lengths, measures)
    losses = _losses(gold, np.asarray(predicted["probabilities"], np.float64))
    yield ExamplesSection(
        title="Most wrong rows",
        examples=[
            Example(
                line=source.lines[row],
                facts={
                    "labels": ", ".join(names[row]) or "none",
                    "predicted": ", ".join(sets[row]) or "none",
                    "loss": f"{losses[row]:.3f}",
                },
                texts=shown_texts(texts, row),
            )
            for row in worst_first(losses).tolist()
            if (gold[row] != chosen[row]).any()
        ],
        note="Rows with a wrong set of labels, by the mean over labels of the negative log "
        "probability of having or not having it.",
    )


def _row_f1(gold: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """F1 of each row's labels, 1 if there are none and none are predicted; float [rows]."""
    right, of_both = (gold & chosen).sum(axis=1), gold.sum(axis=1) + chosen.sum(axis=1)
    return np.divide(2 * right, of_both, out=np.ones(len(gold)), where=of_both > 0)


def _losses(gold: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    of_truth = np.where(gold, probabilities, 1.0 - probabilities)
    return -np.log(np.maximum(of_truth, _LEAST_PROBABILITY)).mean(axis=1)
