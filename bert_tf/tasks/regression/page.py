"""The page of an evaluation of a regressor."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_tf.data.tables.tables import Table
from bert_tf.tasks.base.report_sections import (
    Example,
    ExamplesSection,
    PlotSection,
    Section,
    characters_of,
    length_bins,
    shown_texts,
    spread_points,
    table_by_group,
    worst_first,
)
from bert_tf.tasks.base.task import TaskResults
from bert_tf.tasks.regression.task import RegressionTask


def sections(
    task: RegressionTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    gold = task.gold(source)
    values = np.asarray(predicted["predicted_value"], np.float64)
    errors = values - gold
    drawn = spread_points(len(gold))
    shown = f"{len(drawn):,} of {len(gold):,} rows. " if len(drawn) < len(gold) else ""
    everything = np.concatenate([gold, values])
    yield PlotSection(
        title="Predictions",
        x_title="label",
        y_title="predicted",
        x=gold[drawn],
        y=values[drawn],
        bounds=(float(everything.min()), float(everything.max())),
        has_diagonal=True,
        note=f"{shown}Right predictions are on the diagonal.",
    )
    yield PlotSection(
        title="Residuals",
        x_title="predicted",
        y_title="predicted - label",
        x=values[drawn],
        y=errors[drawn],
        note=f"{shown}Where the points form a slope or a funnel, errors depend on the prediction.",
    )
    measures: dict[str, tuple[Any, np.ndarray]] = {
        "mean error": ("number", errors),
        "mean absolute error": ("number", np.abs(errors)),
    }
    yield table_by_group("By label", "label", *_value_bins(gold), measures)
    texts = task.texts(source)
    yield table_by_group("By length", "characters", *length_bins(characters_of(texts)), measures)
    yield ExamplesSection(
        title="Most wrong rows",
        examples=[
            Example(
                line=source.lines[row],
                facts={
                    "label": f"{gold[row]:.6g}",
                    "predicted": f"{values[row]:.6g}",
                    "error": f"{errors[row]:+.4g}",
                },
                texts=shown_texts(texts, row),
            )
            for row in worst_first(np.abs(errors)).tolist()
        ],
        note="By the distance of prediction and label.",
    )


def _value_bins(gold: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Five ranges of labels of the same width: the range of each row, and their names."""
    edges = np.linspace(gold.min(), gold.max(), 6)
    groups = np.clip(np.searchsorted(edges, gold, side="right") - 1, 0, 4)
    return groups, [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(edges)]
