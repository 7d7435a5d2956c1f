"""Which columns a model reads, and which it adds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.scoring import ScoreConfig, check_columns_are_read

_INPUTS = {"classification": ("text", "text_pair"), "qa": ("question", "context")}
_PREDICTIONS = {
    "classification": ("predicted_label", "predicted_score"),
    "qa": ("predicted_answer", "predicted_start", "predicted_end", "predicted_score"),
}
_PLACES = ("predicted_start", "predicted_end")
_SCORE_DIGITS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringColumns:
    """The columns of a scoring job.

    Attributes:
        sources: column of the tables by name of the model's input.
        predictions: names of the columns that are added.
    """

    sources: dict[str, str]
    predictions: tuple[str, ...]


def scoring_columns(config: ScoreConfig, task: Mapping[str, Any] | None) -> ScoringColumns:
    """The columns that a config names; what it leaves open is the model's.

    Args:
        config: what was asked for.
        task: content of the model's `task.json`.

    Raises:
        UsageError: the model has no task, or a column is given that it does not read.
    """
    if task is None:
        raise UsageError(
            f"{config.model}: was pretrained only and predicts nothing; "
            "run bert-pipeline finetune with --init on it, then export that run"
        )
    known = task["columns"]
    read = [name for name in _INPUTS[task["task"]] if known[name] is not None]
    check_columns_are_read(config, read)
    return ScoringColumns(
        sources={name: getattr(config, f"{name}_column") or known[name] for name in read},
        predictions=_PREDICTIONS[task["task"]],
    )


def prediction_rows(
    names: tuple[str, ...], predicted: Mapping[str, np.ndarray]
) -> list[dict[str, Any]]:
    """The cells that are added to each row, ready for JSON.

    Args:
        names: of the columns.
        predicted: values [rows] by name; a place of -1 stands for no answer and becomes None, a
            probability is rounded to six digits.
    """
    columns = [_cells(name, predicted[name].tolist()) for name in names]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _cells(name: str, values: list[Any]) -> list[Any]:
    if name in _PLACES:
        return [None if value < 0 else value for value in values]
    if name == "predicted_score":
        return [round(value, _SCORE_DIGITS) for value in values]
    return values
