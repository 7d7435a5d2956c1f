"""The sections of a page on numbers: predictions beside labels, residuals and worst rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.tasks.base.report_sections import (
    PlotSection,
    Section,
    spread_points,
    table_by_group,
    table_by_length,
    value_bins,
    worst_rows,
)

if TYPE_CHECKING:
    from bert_tf.data.tables.file_rows import Table
    from bert_tf.tasks.base.prediction_rows import TaskResults
    from bert_tf.tasks.regression.task import RegressionTask


def sections(
    task: RegressionTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    """Yield the sections of an evaluation's page, see `TaskDeclaration.page`."""
    gold = task.gold(source)
    values = np.asarray(predicted["predicted_value"], np.float64)
    errors = values - gold
    drawn, tally = spread_points(len(gold))
    everything = np.concatenate([gold, values])
    yield PlotSection(
        title="Predictions",
        x_title="label",
        y_title="predicted",
        x=gold[drawn],
        y=values[drawn],
        bounds=(float(everything.min()), float(everything.max())),
        has_diagonal=True,
        note=f"{tally}Right predictions are on the diagonal.",
    )
    yield PlotSection(
        title="Residuals",
        x_title="predicted",
        y_title="predicted - label",
        x=values[drawn],
        y=errors[drawn],
        note=f"{tally}Where the points form a slope or a funnel, errors depend on the prediction.",
    )
    measures: dict[str, tuple[Any, np.ndarray]] = {
        "mean error": ("number", errors),
        "mean absolute error": ("number", np.abs(errors)),
    }
    yield table_by_group("By label", "label", *value_bins(gold), measures)
    texts = task.texts(source)
    yield table_by_length(texts, measures)
    yield worst_rows(
        np.abs(errors),
        np.ones(len(gold), bool),
        source.all_places,
        texts,
        lambda row: {
            "label": f"{gold[row]:.6g}",
            "predicted": f"{values[row]:.6g}",
            "error": f"{errors[row]:+.4g}",
        },
        note="By the distance of prediction and label.",
    )
