"""Predictions as cells of rows, the same whichever command writes them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.wording import shown_measure
from bert_tf.config.sections.scoring import BEST, top_of
from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.base.declaration import (
    FieldKind,
    PredictionField,
    ProbabilitiesField,
    ServedTaskDeclaration,
)

_FLOAT32_DIGITS = 7


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskReport:
    """Entries of metrics.json besides the metrics, a summary, and warnings of likely mistakes."""

    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskResults:
    """The results of a model on labeled rows."""

    metrics: dict[str, float]  # by name in metrics.json
    predictions: list[dict[str, Any]]  # of the usable rows of the file, in file order
    report: TaskReport = dataclasses.field(default_factory=TaskReport)
    predicted: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # columns they are of
    errors: Mapping[str, float] = dataclasses.field(default_factory=dict)  # standard, of metrics

    def shown(self, metric: str) -> str:
        """Write a metric with its standard error, if that is known."""
        return shown_measure(self.metrics[metric], self.errors.get(metric))


def prediction_rows(
    fields: Sequence[PredictionField], predicted: Mapping[str, Iterable[Any]]
) -> list[dict[str, Any]]:
    """Make the cells to add to each row, ready for JSON; InputError if an output is missing.

    A place of -1 becomes None, a probability has six decimals, a value the digits of float32, and
    JSON text is parsed.
    """
    missing = [field.name for field in fields if field.name not in predicted]
    if missing:
        raise InputError(
            f"the exported model has no output {', '.join(missing)}: an earlier release exported "
            "it; export it again"
        )
    columns = [
        [_CELLS[field.kind](value) for value in _plain(predicted[field.name])] for field in fields
    ]
    names = [field.name for field in fields]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def labeled_rows(
    fields: Sequence[PredictionField],
    lines: Sequence[int],
    labels: Sequence[Any] | np.ndarray,
    predicted: Mapping[str, Iterable[Any]],
    *,
    probabilities: Sequence[Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of `predictions.jsonl` of a task with a label for each row.

    Args:
        probabilities: all of each row, if its metrics need them.
    """
    rows = [
        {"line": line, "label": label, **row}
        for line, label, row in zip(
            lines, _plain(labels), prediction_rows(fields, predicted), strict=True
        )
    ]
    if probabilities is not None:
        for row, values in zip(rows, probabilities, strict=True):
            row[PROBABILITIES] = values
    return rows


def exact_values(values: np.ndarray) -> list[Any]:
    """Return float32 numbers with as many digits as tell them apart, for metrics of their order."""
    digits = np.frompyfunc(_CELLS["value"], 1, 1)
    exact: list[Any] = digits(values).tolist()
    return exact


def equal_predictions(
    fields: Sequence[PredictionField],
    one: Mapping[str, Iterable[Any]],
    other: Mapping[str, Iterable[Any]],
) -> np.ndarray | None:
    """Compare labels, texts, places and JSON values, bool [rows]; None if there are none."""
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
    rounded: list[list[float]] = probabilities.astype(np.float64).round(PROBABILITY_DIGITS).tolist()
    return rounded


def json_values(column: Iterable[Any]) -> list[Any]:
    """Return predictions of the kind `json` as Python values; texts are parsed."""
    return [_CELLS["json"](value) for value in column]


def _plain(values: Iterable[Any]) -> Iterable[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


_CELLS: dict[FieldKind, Callable[[Any], Any]] = {
    "label": str,
    "text": str,
    "probability": lambda value: round(float(value), PROBABILITY_DIGITS),
    "count": int,
    "place": lambda value: int(value) if value >= 0 else None,
    "value": lambda value: float(f"{float(value):.{_FLOAT32_DIGITS}g}"),
    "json": lambda value: json.loads(value) if isinstance(value, str) else value,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Abstention:
    """Removes predictions whose probability, as rows show it, is lower than `below`."""

    fields: tuple[str, str]  # names of a prediction and of the probability that decides it
    below: float

    @classmethod
    def of(cls, declaration: ServedTaskDeclaration, below: float, model: str) -> Self:
        """Make that of `--abstain-below`; UsageError if the task has no such probability."""
        for field in declaration.predictions:
            if field.decided_by is not None:
                return cls(fields=(field.name, field.decided_by), below=below)
        raise UsageError(
            f"--abstain-below does not apply to {model}: {declaration.name} predicts "
            f"{declaration.summary}, which has no probability"
        )

    def apply(self, rows: Sequence[dict[str, Any]]) -> None:
        """Set predictions to None if rows, ready for JSON, show a lower probability."""
        name, probability = self.fields
        for row in rows:
            if row[probability] < self.below:
                row[name] = None

    def is_decided(self, row: dict[str, Any]) -> bool:
        return row[self.fields[0]] is not None

    def measured(self, results: TaskResults) -> TaskResults:
        """Leave predictions out of results, and measures the rest.

        Adds `coverage`, the fraction of decided rows, and `selective_accuracy`, the fraction of
        these that are right (El-Yaniv & Wiener 2010). Other metrics remain those of all rows.
        """
        rows = [dict(row) for row in results.predictions]
        self.apply(rows)
        decided = [row for row in rows if self.is_decided(row)]
        metrics = {"coverage": len(decided) / len(rows)}
        if decided:
            metrics["selective_accuracy"] = self._accuracy(decided)
        return dataclasses.replace(
            results, metrics={**results.metrics, **metrics}, predictions=rows
        )

    def _accuracy(self, rows: Iterable[dict[str, Any]]) -> float:
        right = [row["label"] == row[self.fields[0]] for row in rows]
        return sum(right) / len(right)


PROBABILITIES, RANKING = "predicted_probabilities", "predicted_ranking"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowProbabilities:
    """Adds all probabilities of rows to their predictions."""

    field: ProbabilitiesField
    labels: tuple[str, ...] | None  # None if every row has its own
    top: int | None  # how many of the likeliest; None for all, in the order of the labels

    @classmethod
    def of(
        cls, declared: ServedTaskDeclaration, task: Mapping[str, Any], scores: str, model: str
    ) -> Self | None:
        """Make those of `--scores`: `best` (None, since predictions have it), `all` or `top-N`."""
        if scores == BEST:
            return None
        if declared.probabilities is None:
            raise UsageError(
                f"--scores {scores} does not apply to {model}: {declared.name} predicts "
                f"{declared.summary}; leave it out"
            )
        field = declared.probabilities
        labels = None if field.labels is None else tuple(task[field.labels])
        return cls(field=field, labels=labels, top=top_of(scores))

    @property
    def name(self) -> str:
        return PROBABILITIES if self.top is None else RANKING

    @property
    def are_labeled(self) -> bool:
        """Whether values are objects with the same keys in all rows, `labels`."""
        return self.labels is not None and self.top is None

    def values(
        self, predicted: Mapping[str, np.ndarray], inputs: Mapping[str, Sequence[Any]]
    ) -> list[Any]:
        """Make a value for each row, ready for JSON; raise InputError if the output is missing.

        It is an object from label to probability, or a list in the order of a row's choices; of the
        likeliest a list of objects with `score`, the best first and of equal ones the first.
        """
        scores = predicted.get(self.field.output)
        if scores is None:
            raise InputError(
                f"the exported model has no output {self.field.output}, which --scores needs: an "
                "earlier release exported it; export it again"
            )
        counts = [scores.shape[1]] * len(scores)
        if self.field.list_input is not None:
            counts = list(map(len, inputs[self.field.list_input]))
        if self.top is not None:
            return list(self._rankings(scores, counts))
        rows = zip(rounded_probabilities(scores), counts, strict=True)
        if self.labels is None:
            return [row[:count] for row, count in rows]
        return [dict(zip(self.labels, row, strict=True)) for row, _ in rows]

    def _rankings(self, scores: np.ndarray, counts: Sequence[int]) -> Iterator[list[Any]]:
        order = np.argsort(-scores, axis=1, kind="stable")
        names: Sequence[Any] = range(scores.shape[1]) if self.labels is None else self.labels
        best = rounded_probabilities(np.take_along_axis(scores, order, axis=1))
        for numbers, values, count in zip(order.tolist(), best, counts, strict=True):
            chosen = list(zip(numbers, values, strict=True))[: min(count, self.top or count)]
            yield [{self.field.noun: names[number], "score": score} for number, score in chosen]
