"""Predictions as cells of rows, the same whichever command writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.base.errors import InputError
from bert_tf.tasks.base.declaration import FieldKind, PredictionField

_PROBABILITY_DIGITS = 6
_FLOAT32_DIGITS = 7


def prediction_rows(
    fields: Sequence[PredictionField], predicted: Mapping[str, Iterable[Any]]
) -> list[dict[str, Any]]:
    """The cells that are added to each row, ready for JSON.

    Args:
        fields: the columns, in order.
        predicted: values [rows] by name; a place of -1 means none and becomes None, a
            probability is rounded to six decimals, a value to the digits that float32 has, and
            JSON text is parsed.

    Raises:
        InputError: the model that predicted has no such output.
    """
    missing = [field.name for field in fields if field.name not in predicted]
    if missing:
        raise InputError(
            f"the exported model has no output {', '.join(missing)}: it is of an earlier release; "
            "export it again"
        )
    columns = [
        [_CELLS[field.kind](value) for value in _plain(predicted[field.name])] for field in fields
    ]
    names = [field.name for field in fields]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def equal_predictions(
    fields: Sequence[PredictionField],
    one: Mapping[str, Iterable[Any]],
    other: Mapping[str, Iterable[Any]],
) -> np.ndarray | None:
    """Whether each row has the same predictions in both, whatever their probabilities: bool [rows].

    Args:
        fields: the columns that are compared: labels, texts and places, and what JSON values have
            beside numbers with a fraction.
        one, other: values [rows] by name.

    Returns:
        None where the fields hold nothing but numbers.
    """
    decided = [field for field in fields if field.kind not in ("probability", "value")]
    if not decided:
        return None
    rows = [
        [{name: _without_scores(value) for name, value in row.items()} for row in found]
        for found in (prediction_rows(decided, one), prediction_rows(decided, other))
    ]
    return np.array([first == second for first, second in zip(*rows, strict=True)], bool)


def _without_scores(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_scores(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_scores(item) for item in value]
    return None if isinstance(value, float) else value


def rounded_probabilities(probabilities: np.ndarray) -> list[list[float]]:
    """Probabilities [rows, n] as the cells of `prediction_rows` have them."""
    rounded: list[list[float]] = (
        probabilities.astype(np.float64).round(_PROBABILITY_DIGITS).tolist()
    )
    return rounded


def json_values(column: Iterable[Any]) -> list[Any]:
    """Predictions of the kind `json` as Python values, whether they are these or their texts."""
    return [_CELLS["json"](value) for value in column]


def _plain(values: Iterable[Any]) -> Iterable[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


_CELLS: dict[FieldKind, Callable[[Any], Any]] = {
    "label": str,
    "text": str,
    "probability": lambda value: round(float(value), _PROBABILITY_DIGITS),
    "place": lambda value: int(value) if value >= 0 else None,
    "value": lambda value: float(f"{float(value):.{_FLOAT32_DIGITS}g}"),
    "json": lambda value: json.loads(value) if isinstance(value, str) else value,
}
