"""The sections of a page on sets of labels: missed and added labels, and the worst rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.tasks.base.histograms import histogram
from bert_tf.tasks.base.prediction_rows import json_values
from bert_tf.tasks.base.report_sections import (
    Section,
    label_section,
    negative_logs,
    table_by_group,
    table_by_length,
    worst_rows,
)
from bert_tf.tasks.multilabel.metrics import row_f1

if TYPE_CHECKING:
    from bert_tf.data.tables.file_rows import Table
    from bert_tf.tasks.base.prediction_rows import TaskResults
    from bert_tf.tasks.multilabel.task import MultiLabelTask


def sections(
    task: MultiLabelTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    """Yield the sections of an evaluation's page, see `TaskDeclaration.page`."""
    gold = task.targets(source)["labels"]
    sets = json_values(predicted["predicted_labels"])
    names = task.gold(source)
    chosen = task.membership(sets)
    thresholds = np.broadcast_to(task.decision_thresholds or (0.5,), len(task.labels))
    yield label_section(
        results.report.details,
        more={
            "missed": ("count", (gold & ~chosen).sum(axis=0).tolist()),
            "added wrongly": ("count", (chosen & ~gold).sum(axis=0).tolist()),
            "threshold": ("number", thresholds.tolist()),
        },
    )
    measures: dict[str, tuple[Any, np.ndarray]] = {
        "all labels right": ("fraction", (gold == chosen).all(axis=1)),
        "F1 of the row": ("fraction", row_f1(gold, chosen)),
    }
    counts = gold.sum(axis=1)
    yield table_by_group(
        "By number of labels",
        "labels of the row",
        counts,
        [f"{count}" for count in range(counts.max() + 1)],
        measures,
    )
    yield histogram(
        "Wrong labels of a row", "missed or added labels", "rows", (gold != chosen).sum(axis=1)
    )
    texts = task.texts(source)
    yield table_by_length(texts, measures)
    probabilities = np.asarray(predicted["probabilities"], np.float64)
    losses = negative_logs(np.where(gold, probabilities, 1.0 - probabilities)).mean(axis=1)
    yield worst_rows(
        losses,
        (gold != chosen).any(axis=1),
        source.all_places,
        texts,
        lambda row: {
            "labels": ", ".join(names[row]) or "none",
            "predicted": ", ".join(sets[row]) or "none",
            "loss": f"{losses[row]:.3f}",
        },
        note="Rows with a wrong set of labels, by the mean over labels of the negative log "
        "probability of having or not having it.",
    )
