"""The columns of tables that a model reads, and those that are added to them."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from bert_tf.base.errors import Fault, UsageError
from bert_tf.config.sections.scoring import ScoreConfig, given_columns
from bert_tf.tasks import PRETRAINED_TASKS
from bert_tf.tasks.base.declaration import FieldKind, PredictionField, WordsDeclaration, imported
from bert_tf.tasks.base.prediction_rows import ABSTAINED, RowProbabilities
from bert_tf.tasks.profile.label_sets import LabelSets, label_sets
from bert_tf.tasks.profile.profile import evaluated_rows
from bert_tf.tasks.registry import declared_task
from pipeline.scoring.tables import CONLL

DELIMITED_FORMATS = ("csv", "tsv")
EXPLANATION = "explanation"
REJECTED = "rejected"
_FLAT_FORMATS = (*DELIMITED_FORMATS, "parquet")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringColumns:
    """The columns that a model reads of tables, and those that are added.

    Attributes:
        sources: column of the tables by name of the model's input; a tuple of columns for an input
            that is a list of texts, see `texts_of`.
        fields: the predictions that are added.
        row_fault: returns the reason to reject a row, see `ServedTaskDeclaration`.
        outcome_faults: returns reasons to reject rows, from the model's outputs, see
            `ServedTaskDeclaration`.
        probabilities: those that are added to the predictions; None if none are.
        has_abstained: whether there is a column with reasons of missing predictions.
        has_explanations: whether the last column has explanations of some rows.
        label_sets: sets of labels that are added; None if none are.
        keeps_rejected: whether there is a column with the reasons of rejects.
        renamed: new names of added columns, by the task's names.
        can_rename: whether the command has `--rename`.
        words: declaration of rows that are lists of words, whose column is the only one of
            `sources`; None if rows are texts.
        empty_inputs: inputs of the model that may be empty, and have no column in the tables.
        task: the model's `task.json`, if rows are lists of words.
    """

    sources: dict[str, str | tuple[str, ...]]
    fields: tuple[PredictionField, ...]
    row_fault: Callable[[Mapping[str, Any]], Fault | None] | None = None
    outcome_faults: Callable[[Mapping[str, Any]], dict[int, Fault]] | None = None
    probabilities: RowProbabilities | None = None
    has_abstained: bool = False
    has_explanations: bool = False
    label_sets: LabelSets | None = None
    keeps_rejected: bool = False
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    can_rename: bool = True
    words: WordsDeclaration | None = None
    empty_inputs: tuple[str, ...] = ()
    task: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def of_words(self, words: WordsDeclaration, column: str, task: Mapping[str, Any]) -> Self:
        """Return columns for rows that are lists of words.

        Args:
            words: the task's declaration for such rows.
            column: of the words.
            task: the model's `task.json`.
        """
        return dataclasses.replace(
            self,
            sources={words.column: column},
            fields=(*self.fields, words.prediction),
            words=words,
            task=task,
        )

    def by_words(
        self, words: list[list[str]] | None, predicted: Mapping[str, np.ndarray]
    ) -> Mapping[str, Any]:
        """Return a model's outputs for rows of words, [rows] by name; those for texts stay."""
        if self.words is None:
            return predicted
        columns_by_words = imported(self.words.implementation)(words, predicted, self.task)
        return {**predicted, **columns_by_words}

    def faults_of(self, predicted: Mapping[str, Any]) -> dict[int, Fault]:
        """Return the faults of rows that cannot be predicted, by their number."""
        return {} if self.outcome_faults is None else self.outcome_faults(predicted)

    def added(self, output_format: str) -> dict[str, FieldKind]:
        """Return names and kinds of the columns that are added to an output, in order.

        Probabilities of labels are an object in JSON lines, and a column each in other formats.
        CoNLL files get only the tag of each word.
        """
        return dict(self._columns(output_format))

    def with_names(self, entries: Sequence[str]) -> Self:
        """Rename columns, `NAME=COLUMN` each.

        Raises:
            UsageError: a name is unknown, or two columns would have the same one.
        """
        renamed: dict[str, str] = {}
        for entry in entries:
            name, column = entry.split("=", 1)
            if renamed.setdefault(name, column) != column:
                raise UsageError(
                    f"--rename {name}={column}: its name is {renamed[name]!r} already; give it once"
                )
        known = [name for name, _ in self._columns("jsonl")]
        for name, column in renamed.items():
            if name not in known:
                raise UsageError(
                    f"--rename {name}={column}: no such column is added; the added ones are "
                    f"{', '.join(known)}"
                )
        columns = dataclasses.replace(self, renamed=renamed)
        for output_format in ("jsonl", "csv"):
            counts = collections.Counter(name for name, _ in columns._columns(output_format))
            repeated = next((name for name, count in counts.items() if count > 1), None)
            if repeated is not None:
                raise UsageError(
                    f"two added columns would both be called {repeated!r}; rename one with "
                    "--rename NAME=COLUMN"
                )
        return columns

    @property
    def set_name(self) -> str:
        """Name of the column with sets of labels."""
        return self._name(LabelSets.name)

    @property
    def explanation_name(self) -> str:
        """Name of the column with explanations."""
        return self._name(EXPLANATION)

    def named_by(self, column: str) -> str:
        """Return the task's name of an added column, which `--rename` takes."""
        for field in self.fields:
            if self._name(field.name) == column:
                return field.name
        if self.has_explanations and self.explanation_name == column:
            return EXPLANATION
        if self.label_sets is not None and self.set_name == column:
            return self.label_sets.name
        for name in (ABSTAINED, REJECTED):
            if self._name(name) == column:
                return name
        assert self.probabilities is not None
        return self.probabilities.name

    def cells(
        self,
        predictions: Sequence[Mapping[str, Any]],
        predicted: Mapping[str, np.ndarray],
        texts: Mapping[str, Sequence[Any]],
        output_format: str,
    ) -> list[dict[str, Any]]:
        """Return the cells that are added to each row, by the names of `added`.

        Explanations are None until all rows are scored, see `with_last_cell`.

        Args:
            predictions: of `prediction_rows`.
            predicted: the model's outputs by name, [rows, …].
            texts: the model's inputs by name, [rows].
            output_format: of the output.
        """
        rows = self._cells(predictions, predicted, texts, output_format)
        if not self.has_explanations or output_format == CONLL:
            return rows
        return [{**row, self.explanation_name: None} for row in rows]

    def _cells(
        self,
        predictions: Sequence[Mapping[str, Any]],
        predicted: Mapping[str, np.ndarray],
        texts: Mapping[str, Sequence[Any]],
        output_format: str,
    ) -> list[dict[str, Any]]:
        rows = [{self._name(name): value for name, value in row.items()} for row in predictions]
        if output_format == CONLL:
            return [{name: row[name] for name in self.added(CONLL)} for row in rows]
        if self.label_sets is not None:
            for row, labels in zip(rows, self.label_sets.values(predicted), strict=True):
                row[self.set_name] = labels
        if self.keeps_rejected:
            rows = [{**row, self._name(REJECTED): None} for row in rows]
        if self.probabilities is None:
            return rows
        values = self.probabilities.values(predicted, texts)
        if self._is_flat(output_format):
            added = [dict(zip(self._flat_names(), row.values(), strict=True)) for row in values]
        else:
            name = self._name(self.probabilities.name)
            added = [{name: value} for value in values]
        return [{**row, **more} for row, more in zip(rows, added, strict=True)]

    def rejected_cells(self, reason: str, output_format: str) -> dict[str, Any]:
        """Return the cells that are added to a rejected row that is kept."""
        empty = dict.fromkeys(self.added(output_format))
        return {**empty, self._name(REJECTED): reason}

    def _columns(self, output_format: str) -> list[tuple[str, FieldKind]]:
        fields = self.fields
        if output_format == CONLL and self.words is not None:
            return [(self._name(self.words.prediction.name), self.words.prediction.kind)]
        columns = self._prediction_columns(fields, output_format)
        if self.has_explanations:
            columns.append((self.explanation_name, "json"))
        return columns

    def _prediction_columns(
        self, fields: Sequence[PredictionField], output_format: str
    ) -> list[tuple[str, FieldKind]]:
        columns = [(self._name(field.name), field.kind) for field in fields]
        if self.has_abstained:
            columns.append((self._name(ABSTAINED), "text"))
        if self.label_sets is not None:
            columns.append((self.set_name, "json"))
        if self.keeps_rejected:
            columns.append((self._name(REJECTED), "text"))
        if self.probabilities is None:
            return columns
        if self._is_flat(output_format):
            return [*columns, *((name, "probability") for name in self._flat_names())]
        return [*columns, (self._name(self.probabilities.name), "json")]

    def _name(self, name: str) -> str:
        return self.renamed.get(name, name)

    def _is_flat(self, output_format: str) -> bool:
        has_labels = self.probabilities is not None and self.probabilities.are_labeled
        return has_labels and output_format in _FLAT_FORMATS

    def _flat_names(self) -> list[str]:
        assert self.probabilities is not None
        name = self._name(self.probabilities.name)
        return [f"{name}_{label}" for label in self.probabilities.labels or ()]


def scoring_columns(
    config: ScoreConfig,
    task: Mapping[str, Any] | None,
    find_words: Callable[[str | None, str | None], str | None] = lambda columns_by_input, known: (
        None
    ),
    has_column: Callable[[str], bool] = lambda name: True,
) -> ScoringColumns:
    """Return the columns that a config names; the others are the model's own.

    Args:
        config: options of `score`.
        task: the model's `task.json`; None if it has none.
        find_words: returns the column of word lists, given the named one and the model's own; None
            if rows are texts.
        has_column: whether a table has a column.

    Raises:
        UsageError: the task is unknown, or does not offer the columns or probabilities.
    """
    if task is None:
        without = " or ".join(PRETRAINED_TASKS)
        raise UsageError(
            f"{config.model}: is only pretrained and has no predictions; run bert-pipeline "
            f"finetune with --init on it and export that run, or export it with --task {without}"
        )
    declared = declared_task(task, config.model)
    known: dict[str, Any] = {
        name: tuple(column) if isinstance(column, list) else column
        for name, column in task["columns"].items()
    }
    read = [name for name in declared.inputs if known.get(name) is not None]
    lists = [name for name in read if isinstance(known[name], tuple)]
    words = declared.words
    names = read if words is None else [*read, words.column]
    columns_by_input = given_columns(config, names, lists=lists)
    sources = {name: columns_by_input.get(name, known[name]) for name in read}
    empty = []
    for name in declared.optional_inputs(task):
        is_named = name in columns_by_input
        if name in sources and not is_named and not has_column(sources[name]):
            empty.append(name)
    columns = ScoringColumns(
        sources={name: column for name, column in sources.items() if name not in empty},
        empty_inputs=tuple(empty),
        fields=_added_fields(config, declared.predictions),
        row_fault=declared.row_fault,
        outcome_faults=declared.outcome_faults,
        keeps_rejected=config.keep_rejected,
        probabilities=RowProbabilities.of(declared, task, config.scores, config.model),
        label_sets=_label_sets(config),
        has_abstained=config.abstain_far is not None,
        has_explanations=config.explain > 0,
    )
    if words is not None and words.input not in columns_by_input:
        column = find_words(columns_by_input.get(words.column), known.get(words.column))
        if column is not None:
            columns = columns.of_words(words, column, task)
    elif words is not None and words.column in columns_by_input:
        raise UsageError(
            f"{config.model}: reads {words.column} or {words.input}; name the column of one"
        )
    return columns.with_names(config.rename)


def _label_sets(config: ScoreConfig) -> LabelSets | None:
    """Make the label sets of `--coverage`; None without it.

    Raises:
        UsageError: there are too few evaluation rows.
    """
    if config.coverage is None:
        return None
    rows = evaluated_rows(config.model, "--coverage")
    return label_sets(rows, config.coverage, by_label=config.coverage_by_label)


def _added_fields(
    config: ScoreConfig, offered: tuple[PredictionField, ...]
) -> tuple[PredictionField, ...]:
    """Return the predictions to add: the usual ones and those of `--extra-column`."""
    extra = [field.name for field in offered if field.is_extra]
    for name in config.extra_columns:
        if name not in extra:
            others = ", ".join(extra) or "none"
            raise UsageError(
                f"--extra-column {name}: {config.model} has no such column; it offers {others}"
            )
    return tuple(
        field for field in offered if not field.is_extra or field.name in config.extra_columns
    )
