"""Predictions as cells of rows, the same whichever command writes them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

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

if TYPE_CHECKING:
    from bert_tf.data.tables.file_rows import FileRows

_FLOAT32_DIGITS = 7


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskReport:
    """Entries of metrics.json besides the metrics, a summary, and warnings of likely mistakes."""

    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskResults:
    """The results of a model on labeled rows.

    Attributes:
        metrics: values by the names in metrics.json.
        predictions: the rows of predictions.jsonl, of the usable rows of the file in file order.
        report: further entries of metrics.json, and lines for the console.
        predicted: columns by output name, from which the metrics are computed.
        errors: standard errors of metrics, as far as they are known.
    """

    metrics: dict[str, float]
    predictions: list[dict[str, Any]]
    report: TaskReport = dataclasses.field(default_factory=TaskReport)
    predicted: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    errors: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def shown(self, metric: str) -> str:
        """Write a metric with its standard error, if that is known."""
        return shown_measure(self.metrics[metric], self.errors.get(metric))


def prediction_rows(
    fields: Sequence[PredictionField], predicted: Mapping[str, Iterable[Any]]
) -> list[dict[str, Any]]:
    """Make the cells to add to each row, ready for JSON.

    A place of -1 becomes None, a probability has six decimals, a value the digits of float32, and
    JSON text is parsed.

    Args:
        fields: columns to make.
        predicted: outputs of a model by name, [rows].

    Raises:
        InputError: an output is missing.
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
    source: FileRows,
    labels: Sequence[Any] | np.ndarray,
    predicted: Mapping[str, Iterable[Any]],
    *,
    probabilities: Sequence[Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of `predictions.jsonl` of a task with a label for each row.

    Args:
        fields: columns of the predictions.
        source: the rows, which their places name.
        labels: labels of the rows, an array or values ready for JSON.
        predicted: outputs by name, [rows].
        probabilities: all of each row, if its metrics need them.
    """
    named = {**source.place_columns, "label": _plain(labels)}
    rows = [
        {**dict(zip(named, cells, strict=True)), **row}
        for *cells, row in zip(*named.values(), prediction_rows(fields, predicted), strict=True)
    ]
    if probabilities is not None:
        for row, values in zip(rows, probabilities, strict=True):
            row[PROBABILITIES] = values
    return rows


def exact_values(values: np.ndarray) -> list[Any]:
    """Return float32 numbers with enough digits to tell them apart, for metrics of their order."""
    digits = np.frompyfunc(_CELLS["value"], 1, 1)
    exact: list[Any] = digits(values).tolist()
    return exact


def equal_predictions(
    fields: Sequence[PredictionField],
    one: Mapping[str, Iterable[Any]],
    other: Mapping[str, Iterable[Any]],
) -> np.ndarray | None:
    """Compare the predictions of two engines: labels, texts, places and JSON values.

    Probabilities and values may differ by rounding, so they are left out, also within JSON.

    Args:
        fields: columns of the predictions.
        one, other: outputs by name, [rows].

    Returns:
        bool [rows]; None if the task predicts numbers only.
    """
    # An argmax or a threshold decides the other fields, so rounding rarely changes them.
    decided = [field for field in fields if field.kind not in ("probability", "value")]
    if not decided:
        return None
    pairs = zip(_decisions(decided, one), _decisions(decided, other), strict=True)
    return np.array([first == second for first, second in pairs], bool)


def _decisions(
    fields: Sequence[PredictionField], predicted: Mapping[str, Iterable[Any]]
) -> list[dict[str, Any]]:
    """Return the cells of each row, without fractional numbers inside JSON values."""
    return [
        {name: _without_scores(value) for name, value in row.items()}
        for row in prediction_rows(fields, predicted)
    ]


def _without_scores(value: Any) -> Any:
    """Replace the fractional numbers of a JSON value by None."""
    if isinstance(value, dict):
        return {name: _without_scores(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_scores(item) for item in value]
    return None if isinstance(value, float) else value


def rounded_probabilities(probabilities: np.ndarray) -> list[list[float]]:
    """Round to the digits that files show, float [rows, n]."""
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


# Column with the reason why a row has no prediction, and the reasons.
ABSTAINED = "abstained"
LOW_PROBABILITY = "low probability"
FAR_TEXT = "far from the training rows"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Abstention:
    """Removes predictions whose probability, as rows show it, is lower than `below`.

    Attributes:
        fields: names of a prediction and of the probability that decides it.
        beyond: largest distance from the training rows; predictions of farther texts are removed,
            too, and rows have the reason. None for no limit.
    """

    fields: tuple[str, str]
    below: float
    beyond: float | None = None

    @classmethod
    def of(
        cls,
        declaration: ServedTaskDeclaration,
        below: float,
        model: str,
        *,
        beyond: float | None = None,
        flag: str = "--abstain-below",
    ) -> Self:
        """Make the abstention of `--abstain-below` and `--abstain-far`.

        Args:
            declaration: declaration of the model's task.
            below: the option's value.
            model: name of the model in messages.
            beyond: see the class.
            flag: name of the option, for the message.

        Raises:
            UsageError: the task has no probability that decides a prediction.
        """
        for field in declaration.predictions:
            if field.decided_by is not None:
                return cls(fields=(field.name, field.decided_by), below=below, beyond=beyond)
        raise UsageError(
            f"{flag} does not apply to {model}: {declaration.name} predicts "
            f"{declaration.summary}, which has no probability"
        )

    def apply(self, rows: Sequence[dict[str, Any]]) -> None:
        """Set predictions to None in rows, ready for JSON, that show a lower probability."""
        name, probability = self.fields
        for row in rows:
            # The rounded probability, so that a reader of the rows can check the decision.
            if row[probability] < self.below:
                row[name] = None

    def apply_far(self, rows: Sequence[dict[str, Any]], distances: np.ndarray) -> int:
        """Add the reason of each row without a prediction, and remove those of far texts.

        Args:
            rows: after `apply`.
            distances: float [rows], distances of their texts from the training rows.

        Returns:
            The number of far texts.
        """
        name, _ = self.fields
        is_far = (distances > self.beyond).tolist()
        for row, far in zip(rows, is_far, strict=True):
            row[ABSTAINED] = LOW_PROBABILITY if row[name] is None else None
            if far:
                row[name] = None
                row[ABSTAINED] = FAR_TEXT
        return sum(is_far)

    def is_decided(self, row: dict[str, Any]) -> bool:
        return row[self.fields[0]] is not None

    def measured(self, results: TaskResults) -> TaskResults:
        """Leave predictions out of results, and measure the rest.

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


PROBABILITIES = "predicted_probabilities"
RANKING = "predicted_ranking"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowProbabilities:
    """Adds all probabilities of rows to their predictions.

    Attributes:
        labels: names of the choices; None if every row has its own.
        top: number of the most likely choices to add; None for all, in the order of the labels.
    """

    field: ProbabilitiesField
    labels: tuple[str, ...] | None
    top: int | None

    @classmethod
    def of(
        cls, declared: ServedTaskDeclaration, task: Mapping[str, Any], scores: str, model: str
    ) -> Self | None:
        """Make the probabilities of `--scores`; None for `best`, which predictions always have.

        Args:
            declared: the model's task.
            task: its `task.json`.
            scores: the option: `best`, `all` or `top-N`.
            model: name of the model in messages.

        Raises:
            UsageError: the task has no probabilities.
        """
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
        """Make a value for each row, ready for JSON.

        Args:
            predicted: outputs of the model by name, [rows, …].
            inputs: its inputs by name, [rows].

        Returns:
            An object from label to probability, or a list in the order of a row's choices. With
            `top`, a list of objects with `score`, the best first; equal ones keep the order of the
            choices.

        Raises:
            InputError: the output is missing.
        """
        scores = predicted.get(self.field.output)
        if scores is None:
            raise InputError(
                f"the exported model has no output {self.field.output}, which --scores needs: an "
                "earlier release exported it; export it again"
            )
        counts = [scores.shape[1]] * len(scores)
        if self.field.list_input is not None:
            # Rows of choices are padded to the longest one; only their own choices are written.
            counts = list(map(len, inputs[self.field.list_input]))
        if self.top is not None:
            return list(self._rankings(scores, counts))
        rows = zip(rounded_probabilities(scores), counts, strict=True)
        if self.labels is None:
            return [row[:count] for row, count in rows]
        return [dict(zip(self.labels, row, strict=True)) for row, _ in rows]

    def _rankings(self, scores: np.ndarray, counts: Sequence[int]) -> Iterator[list[Any]]:
        # A stable sort: of equal probabilities the label that comes first.
        order = np.argsort(-scores, axis=1, kind="stable")
        names: Sequence[Any] = range(scores.shape[1]) if self.labels is None else self.labels
        best = rounded_probabilities(np.take_along_axis(scores, order, axis=1))
        for numbers, values, count in zip(order.tolist(), best, counts, strict=True):
            chosen = list(zip(numbers, values, strict=True))[: min(count, self.top or count)]
            yield [{self.field.noun: names[number], "score": score} for number, score in chosen]
