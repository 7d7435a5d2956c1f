"""Which columns of the tables a model reads, and which are added to them."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections.scoring import BEST, ScoreConfig, given_columns
from bert_tf.tasks.base.declaration import (
    Fault,
    FieldKind,
    PredictionField,
    ProbabilitiesField,
    ServedTaskDeclaration,
)
from bert_tf.tasks.base.prediction_rows import rounded_probabilities
from bert_tf.tasks.pretrained import PRETRAINED_TASKS
from bert_tf.tasks.registry import declared_task

PROBABILITIES, RANKING = "predicted_probabilities", "predicted_ranking"
DELIMITED_FORMATS = ("csv", "tsv")
_FLAT_FORMATS = (*DELIMITED_FORMATS, "parquet")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringColumns:
    """The columns of a scoring job.

    Attributes:
        sources: column of the tables by name of the model's input; of an input that is a list of
            texts a tuple, see `texts_of`.
        fields: the predictions that are added.
        row_fault: why the task rejects a row, see `ServedTaskDeclaration`.
        probabilities: those that are added to the predictions; None for none.
        labels: their names; None where every row has its own.
        top: how many of the likeliest; None for all, in the order of the labels.
        renamed: what added columns are called, by the name that the task gives them.
    """

    sources: dict[str, str | tuple[str, ...]]
    fields: tuple[PredictionField, ...]
    row_fault: Callable[[Mapping[str, Any]], Fault | None] | None = None
    probabilities: ProbabilitiesField | None = None
    labels: tuple[str, ...] | None = None
    top: int | None = None
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def added(self, output_format: str) -> dict[str, FieldKind]:
        """Names and kinds of the columns that are added to an output, in order.

        The probabilities of labels are an object in JSON lines, and a column each elsewhere.

        Args:
            output_format: `csv`, `tsv`, `jsonl` or `parquet`.
        """
        return dict(self._columns(output_format))

    def with_names(self, entries: Sequence[str]) -> Self:
        """The same columns under other names.

        Args:
            entries: `NAME=COLUMN` each.

        Raises:
            UsageError: no such column is added, or two would have one name.
        """
        renamed = dict(entry.split("=", 1) for entry in entries)
        known = [name for name, _ in self._columns("jsonl")]
        for name, column in renamed.items():
            if name not in known:
                raise UsageError(
                    f"--rename {name}={column}: no such column is added; those are "
                    f"{', '.join(known)}"
                )
        columns = dataclasses.replace(self, renamed=renamed)
        for output_format in ("jsonl", "csv"):
            counts = collections.Counter(name for name, _ in columns._columns(output_format))
            twice = next((name for name, count in counts.items() if count > 1), None)
            if twice is not None:
                raise UsageError(
                    f"two added columns would be called {twice!r}; name one of them otherwise by "
                    "--rename NAME=COLUMN"
                )
        return columns

    def cells(
        self,
        predictions: Sequence[Mapping[str, Any]],
        predicted: Mapping[str, np.ndarray],
        texts: Mapping[str, Sequence[Any]],
        output_format: str,
    ) -> list[dict[str, Any]]:
        """The cells that are added to each row, by the names of `added`.

        Args:
            predictions: by the names of `fields`, as of `prediction_rows`.
            predicted: the model's outputs, [rows, …] by name.
            texts: the model's inputs.
            output_format: as of `added`.

        Raises:
            InputError: the model has no output of probabilities.
        """
        rows = [{self._name(name): value for name, value in row.items()} for row in predictions]
        if self.probabilities is None:
            return rows
        if self.probabilities.output not in predicted:
            raise InputError(
                f"the exported model has no output {self.probabilities.output}, which --scores "
                "needs: it is of an earlier release; export it again"
            )
        scores = predicted[self.probabilities.output]
        counts = self._counts(scores, texts)
        if self.top is not None:
            added = [{self._name(RANKING): row} for row in self._rankings(scores, counts)]
        else:
            rounded = zip(rounded_probabilities(scores), counts, strict=True)
            added = [
                self._of_all(row[:count], is_flat=self._is_flat(output_format))
                for row, count in rounded
            ]
        return [{**row, **more} for row, more in zip(rows, added, strict=True)]

    def _columns(self, output_format: str) -> list[tuple[str, FieldKind]]:
        columns = [(self._name(field.name), field.kind) for field in self.fields]
        if self.probabilities is None:
            return columns
        if self._is_flat(output_format):
            return [*columns, *((name, "probability") for name in self._label_columns())]
        name = PROBABILITIES if self.top is None else RANKING
        return [*columns, (self._name(name), "json")]

    def _name(self, name: str) -> str:
        return self.renamed.get(name, name)

    def _is_flat(self, output_format: str) -> bool:
        has_columns = self.labels is not None and self.top is None
        return has_columns and output_format in _FLAT_FORMATS

    def _label_columns(self) -> list[str]:
        name = self._name(PROBABILITIES)
        return [f"{name}_{label}" for label in self.labels or ()]

    def _counts(self, scores: np.ndarray, texts: Mapping[str, Sequence[Any]]) -> list[int]:
        """How many probabilities each row has: one for each label, or for each of its own."""
        assert self.probabilities is not None
        if self.probabilities.list_input is None:
            return [scores.shape[1]] * len(scores)
        return list(map(len, texts[self.probabilities.list_input]))

    def _of_all(self, scores: list[float], *, is_flat: bool) -> dict[str, Any]:
        if is_flat:
            return dict(zip(self._label_columns(), scores, strict=True))
        is_named = self.labels is not None
        value = dict(zip(self.labels or (), scores, strict=True)) if is_named else scores
        return {self._name(PROBABILITIES): value}

    def _rankings(
        self, scores: np.ndarray, counts: Sequence[int]
    ) -> Iterator[list[dict[str, Any]]]:
        """Of each row the likeliest, the best first and of equal ones the first."""
        assert self.probabilities is not None
        order = np.argsort(-scores, axis=1, kind="stable")
        names: Sequence[Any] = range(scores.shape[1]) if self.labels is None else self.labels
        best = rounded_probabilities(np.take_along_axis(scores, order, axis=1))
        for numbers, values, count in zip(order.tolist(), best, counts, strict=True):
            chosen = list(zip(numbers, values, strict=True))[: min(count, self.top or count)]
            yield [
                {self.probabilities.noun: names[number], "score": score} for number, score in chosen
            ]


def scoring_columns(config: ScoreConfig, task: Mapping[str, Any] | None) -> ScoringColumns:
    """The columns that a config names; the others are the model's own.

    Args:
        config: what was asked for.
        task: content of the model's `task.json`.

    Raises:
        UsageError: the model has no task or one that is not known, or a column or probabilities
            are asked for that it does not read or not offer.
    """
    if task is None:
        without = " or ".join(PRETRAINED_TASKS)
        raise UsageError(
            f"{config.model}: was pretrained only and predicts nothing; run bert-pipeline finetune "
            f"with --init on it, then export that run, or export it with --task {without}"
        )
    declared = declared_task(task, config.model)
    known = {
        name: tuple(column) if isinstance(column, list) else column
        for name, column in task["columns"].items()
    }
    read = [name for name in declared.inputs if known.get(name) is not None]
    lists = [name for name in read if isinstance(known[name], tuple)]
    given = given_columns(config, read, lists=lists)
    probabilities = _probabilities(config, declared)
    columns = ScoringColumns(
        sources={name: given.get(name, known[name]) for name in read},
        fields=_added_fields(config, declared.predictions),
        row_fault=declared.row_fault,
        probabilities=probabilities,
        labels=_labels(task, probabilities),
        top=config.top,
    )
    return columns.with_names(config.rename)


def _probabilities(
    config: ScoreConfig, declared: ServedTaskDeclaration
) -> ProbabilitiesField | None:
    if config.scores == BEST:
        return None
    if declared.probabilities is None:
        raise UsageError(
            f"--scores {config.scores} has no meaning for {config.model}: {declared.name} predicts "
            f"{declared.summary}; leave it out"
        )
    return declared.probabilities


def _labels(
    task: Mapping[str, Any], probabilities: ProbabilitiesField | None
) -> tuple[str, ...] | None:
    if probabilities is None or probabilities.labels is None:
        return None
    return tuple(task[probabilities.labels])


def _added_fields(
    config: ScoreConfig, offered: tuple[PredictionField, ...]
) -> tuple[PredictionField, ...]:
    extra = [field.name for field in offered if field.is_extra]
    for name in config.extra_columns:
        if name not in extra:
            has = f"offers {', '.join(extra)}" if extra else "offers none"
            raise UsageError(f"--extra-column {name}: {config.model} has no such column; it {has}")
    return tuple(
        field for field in offered if not field.is_extra or field.name in config.extra_columns
    )
