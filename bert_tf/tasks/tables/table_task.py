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
from bert_tf.data.rows.text_rows import encode_long_texts, encode_texts
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.rejects import reasons_first
from bert_tf.data.tables.tables import Table, read_table
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertClassifier
from bert_tf.tasks.base.declaration import TaskDeclaration
from bert_tf.tasks.base.prediction_rows import prediction_rows
from bert_tf.tasks.base.task import Task, TaskData, TaskReport, TaskResults
from bert_tf.tasks.base.task_card import TaskCard
from bert_tf.tasks.base.task_fields import added_fields, fields_as_settings, fields_from_settings
from bert_tf.tasks.tables.table_host import TableHost
from bert_tf.tasks.tables.table_options import TableTaskConfig
from bert_tf.tasks.tables.table_serving import TableModule
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.model_directory import ModelDirectory

_READING = {
    HEAD: "texts are cut at {} tokens",
    HEAD_TAIL: "of texts longer than {} tokens, the first quarter of these and the rest from their "
    "end is read; other libraries read the beginning",
    WINDOWS: "texts longer than {} tokens are read in overlapping windows, whose logits are "
    "averaged; other libraries read the first window",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableTask(Task):
    """Predicts from logits of the pooled output.

    A subclass is a frozen dataclass. Each field it adds is kept in `task.json`: its value is that
    of the option with the same name, or is `learned` from the training rows. A field with an
    ordinary default may be absent from a `task.json`, as one of an earlier release is.

    Attributes:
        declaration: the task's entry in the registry.
        title: heading of model cards.
        google_script, metric_types: see `TaskCard`.
        has_label_lists: whether the label column may hold a list, or nothing, in a row.
        text_column, text_pair_column, label_column: the columns of a table; without pairs
            `text_pair_column` is None.
        max_seq_length: tokens per sequence, [CLS] and [SEP] included.
        long_texts: what is read of longer texts, see `bert_tf.data.rows.text_rows.pack_texts`; of
            windows, the logits are averaged.
    """

    declaration: ClassVar[TaskDeclaration]
    title: ClassVar[str]
    google_script: ClassVar[str | None] = None
    metric_types: ClassVar[Mapping[str, str]] = {}
    has_label_lists: ClassVar[bool] = False

    text_column: str
    text_pair_column: str | None
    label_column: str
    max_seq_length: int
    long_texts: str = HEAD

    # What a subclass declares.

    @property
    @abc.abstractmethod
    def num_logits(self) -> int:
        """Logits per row."""

    @abc.abstractmethod
    def targets(self, table: Table) -> dict[str, np.ndarray]:
        """Arrays [rows, …] that `loss_parts` finds in a batch under the same names."""

    @abc.abstractmethod
    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        """See `Task.loss_parts`; `outputs["logits"]` is float32 [rows, num_logits]."""

    @abc.abstractmethod
    def served_predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """Predictions inside an exported graph: float32 [rows, num_logits] to tensors [rows, …].

        The declared predictions, and others that may be read off the exported model only.
        """

    @abc.abstractmethod
    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """The same in NumPy, for evaluation and to check an exported graph against.

        It shares no code with `served_predictions`, so that either shows a mistake of the other;
        columns that are arrays of numbers are compared.
        """

    @abc.abstractmethod
    def metrics(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        """Metrics by name, the declared ones among them.

        Args:
            table: labeled rows.
            predicted: columns from `predictions`, or from an exported model.
        """

    # What a subclass may add to.

    def usable(self, table: Table, console: Console) -> Table:
        """Rejects rows whose label cannot be used, by `Table.rejecting`.

        Called on training rows, when fields that are `learned` have their first value, and on
        evaluation rows.
        """
        return table

    def learn(self, table: Table, console: Console) -> Self:
        """The task with its `learned` fields set from the usable training rows.

        Raises:
            InputError: nothing can be learned from them.
        """
        return self

    def columns_of_labels(self) -> tuple[str, ...]:
        """Columns that `usable` makes `label_column` of."""
        return (self.label_column,)

    def training_columns(self) -> tuple[str, ...]:
        """Columns of texts or numbers that training rows have besides texts and label."""
        return ()

    def row_weights(self, table: Table) -> np.ndarray:
        """How much each training row counts, float32 [rows]; evaluation rows count alike."""
        return np.ones(len(table), np.float32)

    def chance_loss(self, targets: Mapping[str, np.ndarray], weights: np.ndarray) -> float | None:
        """See `TaskData.chance_loss`, for targets of `targets` and weights of `row_weights`."""
        return None

    def report(self, table: Table, predicted: dict[str, Any]) -> TaskReport:
        """What there is to report besides the metrics; arguments as of `metrics`."""
        return TaskReport()

    def classes(self, table: Table) -> Sequence[str] | None:
        """What rows held out for evaluation are stratified by; None where rows have no classes."""
        return None

    def gold(self, table: Table) -> Sequence[Any] | np.ndarray:
        """The label of each row as predictions.jsonl shows it: texts, or an array of numbers."""
        return table.columns[self.label_column]

    def served_constants(self) -> dict[str, tf.Tensor]:
        """Outputs of an exported model that do not depend on the rows: names of labels."""
        return {}

    def card_facts(self) -> Iterator[str]:
        """What a model card lists besides columns and length."""
        return iter(())

    # What every task of this kind does.

    @classmethod
    def of_weights(cls, directory: ModelDirectory, **added: Any) -> Self:
        """The task of weights that another library fine-tuned, with the default columns.

        Whoever fine-tuned them left no note of column names, nor of the longest row.

        Args:
            directory: the weights.
            added: the fields that a subclass adds.
        """
        defaults = cls.declaration.options
        assert issubclass(defaults, TableTaskConfig)
        longest = directory.config.max_position_embeddings
        return cls(
            text_column=defaults.text_column,
            text_pair_column=defaults.text_pair_column,
            label_column=TableTaskConfig.label_column,
            max_seq_length=min(defaults.default_sequence_length, longest),
            **added,
        )

    @classmethod
    def from_training(cls, config: TableTaskConfig, console: Console) -> tuple[Self, Table]:
        """Reads the training rows and learns from them."""
        task = cls(**{**cls.options_of(config), "max_seq_length": config.sequence_length})
        table = task.read(
            config.train,
            console,
            dialect=TableDialect.of(config),
            max_rows=config.max_train_rows,
            more_columns=task.training_columns(),
        )
        with reasons_first(table):
            return task.learn(table, console), table

    @classmethod
    def options_of(cls, config: TableTaskConfig) -> dict[str, Any]:
        """The fields that are options, by name."""
        names = [field.name for field in dataclasses.fields(cls) if hasattr(config, field.name)]
        return {name: getattr(config, name) for name in names}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The task of a model directory."""
        columns = settings["columns"]
        return cls(
            text_column=columns[cls.declaration.inputs[0]],
            text_pair_column=next((columns[name] for name in cls.declaration.inputs[1:]), None),
            label_column=columns["label"],
            max_seq_length=settings["max_seq_length"],
            long_texts=settings.get("long_texts", HEAD),
            **fields_from_settings(added_fields(cls, TableTask), settings),
        )

    def settings(self) -> dict[str, Any]:
        """The content of `task.json`."""
        return {
            "task": self.declaration.name,
            **fields_as_settings(added_fields(type(self), TableTask), self),
            "columns": {
                **dict(zip(self.declaration.inputs, self._text_columns(), strict=False)),
                "label": self.label_column,
            },
            "max_seq_length": self.max_seq_length,
            **({} if self.long_texts == HEAD else {"long_texts": self.long_texts}),
        }

    def inputs(self) -> tuple[str, ...]:
        """Names of the texts of a row: the first that is declared, the second where rows are pairs.

        They are `text` and `text_pair`, unless the declaration has others.
        """
        return self.declaration.inputs[: 1 if self.text_pair_column is None else 2]

    def with_columns(self, config: EvaluateConfig) -> Self:
        """The same task, reading other columns where the config names them."""
        given = given_columns(
            config,
            (*self.inputs(), "label"),
            lists=("label",) if self.has_label_lists else (),
        )
        fields = dict(
            zip(self.declaration.inputs, ("text_column", "text_pair_column"), strict=False),
            label="label_column",
        )
        return dataclasses.replace(self, **{fields[name]: given[name] for name in given})

    def read(
        self,
        path: str,
        console: Console,
        *,
        dialect: TableDialect = PLAIN,
        max_rows: int = 0,
        more_columns: Sequence[str] = (),
    ) -> Table:
        """Reads texts and labels.

        Args:
            path: the file.
            console: where lines for the user go.
            dialect: how the file is written.
            max_rows: read only the first rows (0: all).
            more_columns: of values, besides the label.

        Raises:
            InputError: no row can be used.
        """
        label = self.columns_of_labels()
        table = read_table(
            path,
            dialect=dialect,
            text_columns=tuple(filter(None, self._text_columns())),
            value_columns=(*(() if self.has_label_lists else label), *more_columns),
            list_columns=label if self.has_label_lists else (),
            max_rows=max_rows,
            console=console,
        )
        return self.usable(table, console)

    def read_unlabeled(
        self, path: str, console: Console, *, dialect: TableDialect = PLAIN
    ) -> Table:
        """Reads texts alone."""
        columns = tuple(filter(None, self._text_columns()))
        return read_table(path, dialect=dialect, text_columns=columns, console=console)

    def texts(self, source: Table) -> dict[str, list[str]]:
        """The texts of all rows by the names of `inputs`."""
        columns = filter(None, self._text_columns())
        return {
            name: source.columns[column]
            for name, column in zip(self.inputs(), columns, strict=True)
        }

    def groups(self, source: Table) -> RowGroups:
        """Rows with equal texts stay together."""
        keys = map("\0".join, zip(*self.texts(source).values(), strict=True))
        return RowGroups(keys=list(keys), classes=self.classes(source))

    def encode(self, source: Table, tokenizer: WordPieceTokenizer, *, training: bool) -> TaskData:
        """Tokenizes the texts and makes targets of the labels.

        Each window of a text has its targets, and an equal part of its weight.
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
        """The texts of `texts` as rows of tokens, a row or several windows each."""
        first, *pair = (texts[name] for name in self.inputs())
        if pair:
            return encode_texts(tokenizer, first, *pair, max_seq_length=self.max_seq_length)
        return encode_long_texts(
            tokenizer, first, method=self.long_texts, max_seq_length=self.max_seq_length
        )

    def build_model(self, config: BertConfig, *, policy: str) -> Any:
        """The encoder with a linear layer on its pooled output."""
        return BertClassifier(
            config, num_labels=self.num_logits, dtype=policy, name=self.declaration.name
        )

    def predict(self, data: TaskData, reduced: dict[str, np.ndarray]) -> dict[str, Any]:
        """The predictions of each row."""
        return self.predictions(reduced["logits"])

    def measure(self, source: Table, predicted: dict[str, Any]) -> TaskResults:
        """Metrics; line, label and predictions of each row."""
        cells = prediction_rows(self.declaration.predictions, predicted)
        gold = self.gold(source)
        labels = gold.tolist() if isinstance(gold, np.ndarray) else gold
        return TaskResults(
            metrics=self.metrics(source, predicted),
            predictions=[
                {"line": line, "label": label, **row}
                for line, label, row in zip(source.lines, labels, cells, strict=True)
            ],
            report=self.report(source, predicted),
        )

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> TableModule:
        """Predictions for texts."""
        return TableModule(self, model, tokenizer)

    def host(self) -> TableHost:
        return _HostOfTask(
            input_names=self.inputs(),
            max_seq_length=self.max_seq_length,
            long_texts=self.long_texts,
            task=self,
        )

    def card(self) -> TaskCard:
        """Columns and length, then `card_facts`."""
        pair = self.text_pair_column
        texts = f"`{self.text_column}`" + ("" if pair is None else f" and `{pair}`")
        return TaskCard(
            title=self.title,
            facts=(
                f"trained on the columns {texts} (text) and `{self.label_column}` (label)",
                _READING[self.long_texts].format(self.max_seq_length),
                *self.card_facts(),
            ),
            example=dict(zip(self.inputs(), ("some text", "another text"), strict=False)),
            signature_output=self.declaration.predictions[0].name,
            transformers_class="AutoModelForSequenceClassification",
            pipeline_tag="text-classification",
            metric_types=self.metric_types,
            keras_hub_class="BertTextClassifier",
            google_script=self.google_script,
        )

    def _text_columns(self) -> tuple[str, str | None]:
        return self.text_column, self.text_pair_column


@dataclasses.dataclass(frozen=True, kw_only=True)
class _HostOfTask(TableHost):
    """The steps around the graph of a task that need not have a `HostTask` of its own."""

    task: TableTask

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        return self.task.predictions(logits)
