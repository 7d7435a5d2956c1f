"""Base of the tasks whose rows are a text or a pair of texts with a label: a sequence per row."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import EvaluateConfig
from bert_tf.config.sections.finetuning import HEAD, HEAD_TAIL, WINDOWS
from bert_tf.config.sections.scoring import given_columns
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.holdout import RowGroups
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.tables.judged import ReadValues
from bert_tf.data.tables.tables import has_column, read_table
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertClassifier
from bert_tf.serving.graphs.table import TableModule
from bert_tf.tasks.base.declaration import (
    PAIR_IS_OPTIONAL,
    TableTaskConfig,
    TaskCard,
    TaskDeclaration,
)
from bert_tf.tasks.base.host_task import (
    TableHost,
    added_fields,
    fields_as_settings,
    fields_from_settings,
)
from bert_tf.tasks.base.prediction_rows import TaskReport, TaskResults, labeled_rows
from bert_tf.tasks.base.task import Task
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import reads_pairs
from bert_tf.weights.model_directory import ModelDirectory

_READING = {
    HEAD: "texts are cut at {} tokens",
    HEAD_TAIL: "texts longer than {} tokens are cut in the middle: a quarter of these tokens is "
    "their beginning, the rest their end; other libraries read the beginning",
    WINDOWS: "texts longer than {} tokens are read in overlapping windows, whose logits are "
    "averaged; other libraries read the first window",
}
_OPTIONAL_PAIR = (
    "the weights do not say whether they were trained on single texts or on pairs: both are read, "
    "pairs by the signature `pairs` of the graph"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableTask(Task):
    """Base of tasks that predict from logits of the pooled output of a text or a pair of texts.

    Each field that a subclass adds is an option of the same name, or `learned` from the training
    rows; `task.json` keeps it. One with an ordinary default may be missing there.

    Attributes:
        google_script, metric_types: see `TaskCard`.
        has_label_lists: whether a cell of the label column may hold a list, or nothing.
        is_pair_optional: whether the weights do not tell single texts from pairs; a row with an
            empty second text is then a single text.
    """

    declaration: ClassVar[TaskDeclaration]
    title: ClassVar[str]  # heading of model cards
    google_script: ClassVar[str | None] = None
    metric_types: ClassVar[Mapping[str, str]] = {}
    has_label_lists: ClassVar[bool] = False

    text_column: str
    text_pair_column: str | None
    label_column: str
    max_seq_length: int
    long_texts: str = HEAD  # how to read longer texts; the logits of windows are averaged
    is_pair_optional: bool = False

    # Declared by subclasses.

    @property
    @abc.abstractmethod
    def num_logits(self) -> int:
        """Return the number of logits per row."""

    @abc.abstractmethod
    def targets(self, table: Table) -> dict[str, np.ndarray]:
        """Make arrays [rows, …]; `loss_parts` finds them in a batch under the same names."""

    @abc.abstractmethod
    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        """Sum losses and metrics of a batch, see `Task.loss_parts`.

        Args:
            outputs: `logits`, float32 [rows, num_logits].
            batch: has `targets` under their names.
        """

    @abc.abstractmethod
    def served_predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """Predict inside an exported graph: float32 [rows, num_logits] to tensors [rows, …]."""

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """Predict the same in NumPy, independently of the graph: each checks the other.

        A task without a declared host predicts here.
        """
        return self.host().predictions(logits)

    @abc.abstractmethod
    def metrics(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        """Measure labeled rows and columns of `predictions`, or of an exported model."""

    # Extended by subclasses where they need it.

    def usable(self, table: Table, console: Console) -> Table:
        """Reject rows with unusable labels, before `learned` fields are set for training rows."""
        return table

    def learn(self, table: Table, console: Console) -> Self:
        """Return the task with `learned` fields set from usable training rows.

        Raises:
            InputError: nothing can be learned from them.
        """
        return self

    def corrected(self, table: Table, config: Any, console: Console) -> Table:
        """Apply the corrections of labels that a config names to usable training rows."""
        return table

    def columns_of_labels(self) -> tuple[str, ...]:
        """Return the columns from which `usable` makes `label_column`."""
        return (self.label_column,)

    def training_columns(self) -> tuple[str, ...]:
        """Return the columns of training rows besides texts and label."""
        return ()

    def row_weights(self, table: Table) -> np.ndarray:
        """Return the weight of each training row, float32 [rows]; evaluation rows count alike."""
        return np.ones(len(table), np.float32)

    def chance_loss(self, targets: Mapping[str, np.ndarray], weights: np.ndarray) -> float | None:
        """Return the mean loss of the best prediction that ignores the texts; None if unknown.

        Args:
            targets: result of `targets` for the training rows.
            weights: float32 [rows], result of `row_weights`.
        """
        return None

    def standard_errors(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        """Return the standard errors of some metrics, by `standard_errors.py`."""
        return {}

    def report(self, table: Table, predicted: dict[str, Any]) -> TaskReport:
        return TaskReport()

    def classes(self, table: Table) -> Sequence[str] | None:
        """Return the classes by which to stratify held-out rows, if any."""
        return None

    def gold(self, table: Table) -> Sequence[Any] | np.ndarray:
        """Return the labels as predictions.jsonl shows them: texts, or an array of numbers."""
        return table.columns[self.label_column]

    def served_constants(self) -> dict[str, tf.Tensor]:
        """Return outputs of an exported model that do not depend on the rows."""
        return {}

    def card_facts(self) -> Iterator[str]:
        """Yield facts of the model card besides columns and length."""
        return iter(())

    # Common to all tasks of this kind.

    @classmethod
    def of_weights(cls, directory: ModelDirectory, **more: Any) -> Self:
        pairs = reads_pairs(directory)
        columns = {
            "label_column": TableTaskConfig.label_column,
            "text_pair_column": None if pairs is False else cls.declaration.inputs[1],
            "is_pair_optional": pairs is None,
        }
        return super().of_weights(directory, **columns, **more)

    @classmethod
    def from_training(cls, config: TableTaskConfig, console: Console) -> tuple[Self, Table]:
        task = cls.of_options(config)
        more = task.training_columns()
        table = task.read(config.train, more_columns=more, **cls.reading(config, console))
        table = task.corrected(table, config, console)
        with table.reasons_first():
            return task.learn(table, console), table

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        columns = settings["columns"]
        return cls(
            text_column=columns[cls.declaration.inputs[0]],
            text_pair_column=next((columns[name] for name in cls.declaration.inputs[1:]), None),
            label_column=columns["label"],
            max_seq_length=settings["max_seq_length"],
            long_texts=settings.get("long_texts", HEAD),
            is_pair_optional=settings.get(PAIR_IS_OPTIONAL, False),
            **fields_from_settings(added_fields(cls, TableTask), settings),
        )

    def settings(self) -> dict[str, Any]:
        texts = self.text_column, self.text_pair_column
        return {
            "task": self.declaration.name,
            **fields_as_settings(added_fields(type(self), TableTask), self),
            "columns": {
                **dict(zip(self.declaration.inputs, texts, strict=False)),
                "label": self.label_column,
            },
            "max_seq_length": self.max_seq_length,
            **({} if self.long_texts == HEAD else {"long_texts": self.long_texts}),
            **({PAIR_IS_OPTIONAL: True} if self.is_pair_optional else {}),
        }

    def inputs(self) -> tuple[str, ...]:
        return self.declaration.inputs[: 1 if self.text_pair_column is None else 2]

    def with_columns(self, config: EvaluateConfig) -> Self:
        lists = ("label",) if self.has_label_lists else ()
        columns = given_columns(config, (*self.inputs(), "label"), lists=lists)
        text_fields = ("text_column", "text_pair_column")
        fields = {**dict(zip(self.inputs(), text_fields, strict=False)), "label": "label_column"}
        named = {fields[name]: columns[name] for name in columns}
        is_optional = self.is_pair_optional and "text_pair_column" not in named
        return dataclasses.replace(self, **named, is_pair_optional=is_optional)

    def read(
        self,
        path: str,
        console: Console,
        *,
        dialect: TableDialect = PLAIN,
        max_rows: int = 0,
        more_columns: Sequence[str] = (),
    ) -> Table:
        """Read texts, labels and `more_columns` of values.

        Raises:
            InputError: no row can be used.
            UsageError: a column is missing.
        """
        pair = self.text_pair_column if self.is_pair_optional else None
        if pair is not None and not has_column(path, pair, dialect):
            single = dataclasses.replace(self, text_pair_column=None, is_pair_optional=False)
            return single.read(
                path, console, dialect=dialect, max_rows=max_rows, more_columns=more_columns
            )
        labels = self.columns_of_labels()
        list_columns: tuple[str, ...] = ()
        value_columns = (*labels, *more_columns)
        if self.has_label_lists:
            list_columns = labels
            value_columns = tuple(more_columns)
        table = read_table(
            path,
            dialect=dialect,
            text_columns=self._text_columns(),
            value_columns=value_columns,
            list_columns=list_columns,
            max_rows=max_rows,
            console=console,
        )
        return self.usable(table, console)

    def read_unlabeled(
        self, path: str, console: Console, *, dialect: TableDialect = PLAIN
    ) -> Table:
        return read_table(path, dialect=dialect, text_columns=self._text_columns(), console=console)

    def texts(self, source: Table) -> dict[str, list[str]]:
        pairs = zip(self.inputs(), self._text_columns(), strict=True)
        no_texts = [""] * len(source)
        return {name: source.columns.get(column, no_texts) for name, column in pairs}

    def read_values(self, source: Table) -> ReadValues:
        texts = [column for column in self._text_columns() if column in source.columns]
        return ReadValues(
            source=source.source,
            lines=source.lines,
            places=source.places,
            texts={column: source.columns[column] for column in texts},
            gold={self.label_column: self.gold(source)},
            labels=self.flat_labels(source),
            used=(*texts, *self.columns_of_labels(), *self.training_columns()),
            has_label_lists=self.has_label_lists,
            may_be_pair=len(self.inputs()) < len(self.declaration.inputs),
        )

    def flat_labels(self, table: Table) -> Sequence[str]:
        """Return the labels of all rows, end to end, as texts."""
        return table.columns[self.label_column]

    def groups(self, source: Table) -> RowGroups:
        keys = map("\0".join, zip(*self.texts(source).values(), strict=True))
        return RowGroups(keys=list(keys), classes=self.classes(source))

    def encode(self, source: Table, tokenizer: WordPieceTokenizer, *, training: bool) -> TaskData:
        """Turn rows into model input; a text is one sequence, or several windows.

        Each window has the targets of its text, and an equal part of its weight.
        """
        targets = self.targets(source)
        weights = self.row_weights(source) if training else np.ones(len(source), np.float32)
        chance_loss = self.chance_loss(targets, weights)
        rows = self.model_input(tokenizer, self.texts(source))
        if rows.owners is not None:
            targets = {name: values[rows.owners] for name, values in targets.items()}
            weights = (weights / np.bincount(rows.owners))[rows.owners].astype(np.float32)
        return TaskData(
            source=source,
            rows=rows,
            targets=targets,
            weights=weights,
            owners=rows.owners,
            averages_outputs=True,
            chance_loss=chance_loss,
        )

    def model_input(
        self, tokenizer: WordPieceTokenizer, texts: Mapping[str, list[str]]
    ) -> EncodedRows:
        rows: EncodedRows = self.host().encode(tokenizer, texts).sequences
        return rows

    def build_model(self, config: BertConfig, *, policy: str) -> Any:
        return BertClassifier(
            config, num_labels=self.num_logits, dtype=policy, name=self.declaration.name
        )

    def predict(self, data: TaskData, reduced: dict[str, np.ndarray]) -> dict[str, Any]:
        return self.predictions(reduced["logits"])

    def measure(self, source: Table, predicted: dict[str, Any]) -> TaskResults:
        return TaskResults(
            metrics=self.metrics(source, predicted),
            predictions=labeled_rows(
                self.declaration.predictions,
                source,
                self.gold(source),
                predicted,
                probabilities=self.row_probabilities(predicted),
            ),
            report=self.report(source, predicted),
            errors=self.standard_errors(source, predicted),
        )

    def row_probabilities(self, predicted: Mapping[str, Any]) -> list[Any] | None:
        """Return all probabilities of each row; None if the predictions suffice for metrics."""
        return None

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> TableModule:
        return TableModule(self, model, tokenizer)

    def host(self) -> Any:
        if self.declaration.host is not None:
            return super().host()
        return _HostOfTask(
            input_names=self.inputs(),
            max_seq_length=self.max_seq_length,
            long_texts=self.long_texts,
            is_pair_optional=self.is_pair_optional,
            task=self,
        )

    def card(self) -> TaskCard:
        texts = " and ".join(f"`{name}`" for name in self._text_columns())
        inputs = self.inputs()[: 1 if self.is_pair_optional else None]
        return TaskCard(
            title=self.title,
            facts=(
                f"trained on the columns {texts} (text) and `{self.label_column}` (label)",
                _READING[self.long_texts].format(self.max_seq_length),
                *((_OPTIONAL_PAIR,) if self.is_pair_optional else ()),
                *self.card_facts(),
            ),
            example=dict(zip(inputs, ("some text", "another text"), strict=False)),
            signature_output=self.declaration.predictions[0].name,
            transformers_class="AutoModelForSequenceClassification",
            pipeline_tag="text-classification",
            metric_types=self.metric_types,
            keras_hub_class="BertTextClassifier",
            google_script=self.google_script,
        )

    def _text_columns(self) -> tuple[str, ...]:
        """Return the columns of the one or two texts."""
        return tuple(filter(None, (self.text_column, self.text_pair_column)))


class Student(TableTask):
    """A task that can learn from the logits of a teacher of the same class."""

    def as_student(self) -> Self:
        return self

    @abc.abstractmethod
    def order_of_logits(self, teacher: Any, path: str) -> np.ndarray:
        """Return the place of the teacher's logit for each of the task's, int [logits].

        Args:
            teacher: a task of the same class.
            path: path of the teacher, for the message.

        Raises:
            UsageError: the teacher has other labels.
        """

    @abc.abstractmethod
    def soft_losses(
        self, logits: tf.Tensor, teacher_logits: tf.Tensor, *, temperature: float
    ) -> tf.Tensor:
        """Compute the distances of predictions from the teacher's, float32 [rows].

        Args:
            logits: float32 [rows, logits].
            teacher_logits: the same of the teacher, in the order of the task's.
            temperature: see `softened_divergence`.
        """


@dataclasses.dataclass(frozen=True, kw_only=True)
class _HostOfTask(TableHost):
    """The host of a task that declares none."""

    task: TableTask

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        return self.task.predictions(logits)
