"""Base classes of tasks: rows in, a head, a loss, metrics and predictions out.

A new task is one folder with a `TaskDeclaration` and a subclass of `Task`, and a line in
`registry.py`. `TableTask` is the base for rows of a text, or a pair, with a label.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypedDict, get_type_hints

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import flat_ranges, group_means
from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import EvaluateConfig, FinetuneConfig
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.holdout import RowGroups
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.judged import ReadValues
from bert_tf.data.tables.tables import FileRows
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.row_batches import single_batch
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.base.ceiling import Cause
from bert_tf.tasks.base.declaration import (
    ServedTaskDeclaration,
    TaskCard,
    TaskDeclaration,
    imported,
)
from bert_tf.tasks.base.host_task import HostRows, fields_as_settings, fields_from_settings
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.model_directory import ModelDirectory

ROW_WEIGHTS = "row_weights"


RowsCheck = Callable[[Sequence[FileRows]], None]
"""Validates the rows of all files before training; raises to reject them."""


def accept_any_rows(sources: Sequence[FileRows]) -> None:
    """Reject nothing."""


class Reading(TypedDict):
    """Arguments of the functions that read training rows, the same for all tasks.

    Attributes:
        dialect: how the file is written.
        max_rows: how many of its first rows are read; 0 for all.
        console: gets warnings about the rows.
    """

    dialect: TableDialect
    max_rows: int
    console: Console


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskData:
    """Labeled rows of a file, ready for a model.

    A row here is one of the model's; a row of the file may have several.

    Attributes:
        source: the rows as the task read them.
        rows: a long context has several rows here, a row with choices is one of several sequences
            (`GroupedRows`).
        targets: by name in a batch, [rows, …].
        weights: float32 [rows]; 0 leaves a row out of the loss.
        token_targets: by name in a batch, a value for each token of `rows`; in a batch [rows,
            length], 0 for padding.
        owners: int64 [rows], the row of the file that each belongs to, in order; None if each row
            of the file has one.
        averages_outputs: whether to average the reduced outputs of an owner's rows, so that
            `Task.fitted` and `Task.predict` see a row per row of the file.
        details: of the task, to turn outputs into predictions.
        compares_rows: whether the loss compares the rows of a batch, drawn at random then, since
            batches of similar lengths would never compare rows of different ones.
        notes: sentences for the user on the rows of the file.
        chance_loss: mean loss of the best prediction that ignores the texts; None if unknown.
    """

    source: Any
    rows: EncodedRows
    targets: dict[str, np.ndarray]
    weights: np.ndarray
    token_targets: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    owners: np.ndarray | None = None
    averages_outputs: bool = False
    details: Any = None
    compares_rows: bool = False
    notes: tuple[str, ...] = ()
    chance_loss: float | None = None

    @property
    def host_rows(self) -> HostRows:
        return HostRows(sequences=self.rows, details=self.details)

    def renumbered(self, numbers: Callable[[np.ndarray], np.ndarray]) -> Self:
        """Replace the ids of tokens, by a function of int32 [tokens]."""
        return dataclasses.replace(
            self, rows=dataclasses.replace(self.rows, ids=numbers(self.rows.ids))
        )

    def averaged(self, reduced: dict[str, np.ndarray]) -> tuple[TaskData, dict[str, np.ndarray]]:
        """Average reduced outputs [rows, …] by owner, if `averages_outputs`.

        Returns:
            Data with a target and weight for each row of the file, whose `rows` are the first of
            each owner, and the averages.
        """
        if self.owners is None or not self.averages_outputs:
            return self, reduced
        firsts, means = group_means(reduced, self.owners)
        data = dataclasses.replace(
            self,
            rows=self.rows.selected(firsts),
            targets={name: values[firsts] for name, values in self.targets.items()},
            weights=np.add.reduceat(self.weights, firsts),
            owners=None,
            averages_outputs=False,
        )
        return data, means

    def batch(
        self, chosen: np.ndarray, *, length: int, pad_id: int, batch_size: int | None = None
    ) -> dict[str, np.ndarray]:
        """Cut out model input, all targets and `row_weights`.

        Args:
            chosen: int [n], the rows.
            length: tokens to pad to, at least as many as the longest row has.
            pad_id: id of [PAD].
            batch_size: rows to pad to; None for only `chosen`.

        Returns:
            Arrays [batch_size, …] by name. Rows of padding are the last ones, and weigh 0.
        """
        batch = self.rows.padded(chosen, length=length, pad_id=pad_id, batch_size=batch_size)
        size = len(batch["input_mask"])
        for name, values in {**self.targets, ROW_WEIGHTS: self.weights}.items():
            column = np.zeros((size, *values.shape[1:]), values.dtype)
            column[: len(chosen)] = values[chosen]
            batch[name] = column
        if not self.token_targets:
            return batch
        tokens = flat_ranges(self.rows.offsets[chosen], self.rows.lengths[chosen])
        is_token = batch["input_mask"] == 1
        for name, values in self.token_targets.items():
            batch[name] = np.zeros((size, length), values.dtype)
            batch[name][is_token] = values[tokens]
        return batch


class Baseline(NamedTuple):
    """The best prediction that ignores the texts.

    Attributes:
        metrics: those that are known, by name.
        prediction: what it predicts, to follow "is no better than".
    """

    metrics: Mapping[str, float]
    prediction: str


class ServedTask(abc.ABC):
    """A task as exported models need it: a head, texts in, predictions out.

    Subclasses are frozen dataclasses; `task.json` keeps their fields.
    """

    declaration: ClassVar[ServedTaskDeclaration]
    max_seq_length: int

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Restore a model directory's task from `task.json`.

        Raises:
            KeyError: a setting is missing.
        """
        hints = get_type_hints(cls)
        values = fields_from_settings(dataclasses.fields(cls), settings)  # type: ignore[arg-type]
        # A field that is a dataclass, such as columns, is an object in JSON.
        nested = {
            name: hints[name](**fields_from_settings(dataclasses.fields(hints[name]), value))
            for name, value in values.items()
            if isinstance(value, dict)
        }
        return cls(**{**values, **nested})

    def settings(self) -> dict[str, Any]:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {"task": self.declaration.name, **fields_as_settings(fields, self)}

    @abc.abstractmethod
    def build_model(self, config: BertConfig, *, policy: str) -> Any:
        """Make a Keras model with this task's head.

        Args:
            config: sizes of the encoder.
            policy: dtype policy of Keras, `float32` or `mixed_bfloat16`.
        """

    def folded_into(self, model: Any) -> Self:
        """Move factors of the predictions into the weights of a built model, in place.

        Other libraries load exported weights and know nothing of the task's factors.

        Returns:
            The task for the changed model, with equal predictions.
        """
        return self

    @abc.abstractmethod
    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> TextModule:
        """Make the module to export, from texts to predictions.

        Args:
            model: built, in float32.
            tokenizer: with the model's vocabulary.
        """

    def host(self) -> Any:
        """Make the task's own `HostTask`."""
        assert self.declaration.host is not None
        return imported(self.declaration.host).from_settings(self.settings())

    @abc.abstractmethod
    def sequence_outputs(self, model: Any, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Run the model on sequences, with the outputs that `HostTask.reduce` takes.

        Args:
            batch: `input_word_ids`, `input_mask`, `input_type_ids`, int32 [n, length], and
                `HostRows.inputs`.

        Returns:
            Tensors [n, …] by name.
        """

    def host_predictions(
        self, model: Any, tokenizer: WordPieceTokenizer, texts: Mapping[str, Sequence[Any]]
    ) -> dict[str, Any]:
        """Predict texts as `host` does, with the Keras model in the place of an exported graph."""
        host = self.host()
        rows = host.encode(HostTokenizer(tokenizer.vocab, lowercase=tokenizer.lowercase), texts)
        more = {name: tf.constant(values, tf.int32) for name, values in rows.inputs.items()}
        batch = single_batch(rows.sequences, tokenizer.pad_id) | more
        outputs = {
            name: values.numpy() for name, values in self.sequence_outputs(model, batch).items()
        }
        reduced = host.reduce(rows, np.arange(len(rows.sequences)), outputs)
        return host.predict(rows, texts, reduced)

    def reference_outputs(
        self, model: Any, tokenizer: WordPieceTokenizer, texts: Mapping[str, Sequence[Any]]
    ) -> dict[str, np.ndarray]:
        """Return the fractional numbers of `host_predictions`, to check an exported model."""
        return {
            name: values
            for name, values in self.host_predictions(model, tokenizer, texts).items()
            if isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.floating)
        }

    @abc.abstractmethod
    def card(self) -> TaskCard:
        """Return the task's part of a model card."""


class Task(ServedTask):
    """A task to fine-tune for, with all that was learned from its training data (labels, …)."""

    declaration: ClassVar[TaskDeclaration]

    # For the ceiling of labeled rows, see `bert_tf.tasks.running.ceiling`.
    ceiling_metrics: ClassVar[tuple[str, ...]] = ()  # the lowest is reported; () without a ceiling
    perfect_metric: ClassVar[float] = 1.0  # what they are if all predictions are right
    length_flag: ClassVar[str] = "--max-seq-length"  # the option that cuts what the model reads

    @classmethod
    @abc.abstractmethod
    def from_training(cls, config: Any, console: Console) -> tuple[Self, Any]:
        """Read the training rows.

        Args:
            config: the task's own section of `finetune`.

        Returns:
            The task, with all that is learned from the rows, and the `FileRows`, for `encode`.

        Raises:
            InputError, UsageError: the file or its labels cannot be used.
        """

    @staticmethod
    def reading(config: FinetuneConfig, console: Console) -> Reading:
        """Return arguments of the functions that read training rows; say if these are not all."""
        if config.max_train_rows:
            console.info(
                f"{config.train}: at most its first {quantity(config.max_train_rows, 'row')} are "
                "read (finetune.max_train_rows); of sorted rows, some labels may be missing"
            )
        dialect = TableDialect.of(config)
        return Reading(dialect=dialect, max_rows=config.max_train_rows, console=console)

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        """Make the task of another library's weights, with defaults; None if of another task."""
        return None

    @classmethod
    def default_options(cls, directory: ModelDirectory) -> dict[str, Any]:
        """Return the defaults of `options_of` for weights of another library."""
        options, longest = cls.declaration.options, directory.config.max_position_embeddings
        length = min(options.default_sequence_length, longest)
        return {**_same_named(cls, options), "max_seq_length": length}

    @classmethod
    def options_of(cls, config: Any) -> dict[str, Any]:
        """Return the task's fields that are options by the same name, as `config` has them."""
        return {**_same_named(cls, config), "max_seq_length": config.sequence_length}

    @classmethod
    def of_options(cls, config: Any, **more: Any) -> Self:
        """Make the task from `options_of` and other fields, which win."""
        return cls(**{**cls.options_of(config), **more})

    @classmethod
    def of_weights(cls, directory: ModelDirectory, **more: Any) -> Self:
        """Make the task from `default_options` and other fields, which win."""
        return cls(**{**cls.default_options(directory), **more})

    def as_student(self) -> Any:
        """Return the task as a `Student`.

        Raises:
            UsageError: the task cannot learn from a teacher.
        """
        raise UsageError(f"{self.declaration.name}: cannot be learned from a teacher")

    @abc.abstractmethod
    def with_columns(self, config: EvaluateConfig) -> Self:
        """Return the task with the config's columns.

        Raises:
            UsageError: the model does not use a named column.
        """

    @abc.abstractmethod
    def read(self, path: str, console: Console, *, dialect: TableDialect = PLAIN) -> Any:
        """Read labeled rows to measure a model on."""

    def describe(self, sources: Mapping[str, Any]) -> Iterator[str]:
        """Yield lines for the user about rows: labels and counts, ….

        Args:
            sources: rows by name, `training` first.
        """
        return iter(())

    @abc.abstractmethod
    def texts(self, source: Any) -> dict[str, list[Any]]:
        """Return the texts of each row by the input names of an exported model (`text`, …)."""

    def read_values(self, source: Any) -> ReadValues:
        """Return the rows read, as detectors judge them and the user sees them."""
        return ReadValues(
            source=source.source,
            lines=source.lines,
            places=source.places,
            texts=self.texts(source),
        )

    @abc.abstractmethod
    def groups(self, source: Any) -> RowGroups:
        """Return which training rows stay together when some are held out, and their classes."""

    def trained_on(self, source: Any) -> Self:
        """Return the task with statistics of the training rows: weights of labels, means, ….

        Called without the held-out rows of `from_training`, whose labels are still known.

        Raises:
            InputError: nothing can be learned from the rows.
        """
        return self

    @abc.abstractmethod
    def encode(self, source: Any, tokenizer: WordPieceTokenizer, *, training: bool) -> TaskData:
        """Turn rows into model input and targets.

        Args:
            source: rows as the task read them.
            training: whether the rows are to train on; weights of rows only count there.
        """

    def outputs(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        """Run the model; traced into a graph.

        Args:
            batch: what `TaskData.batch` made.
            training: whether dropout is on.
            dropout_key: int [2], seed of this step's dropout; None without dropout.

        Returns:
            Tensors by name; the first axis of every one is the row.
        """
        return {"logits": model(batch, training=training, dropout_key=dropout_key)}

    def sequence_outputs(self, model: Any, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self.outputs(model, batch, training=False, dropout_key=None)

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Return the weight of each loss term, see `TaskLoss.weights`."""
        return {"loss": tf.reduce_sum(batch[ROW_WEIGHTS])}

    @abc.abstractmethod
    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        """Sum losses and metrics over a batch, from the outputs; traced into a graph."""

    def reduce(
        self, data: TaskData, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Reduce a batch's outputs as `HostTask.reduce`; `chosen` are its rows, int [n]."""
        return self.host().reduce(data.host_rows, chosen, outputs)

    def fitted(self, data: TaskData, reduced: dict[str, np.ndarray]) -> Self:
        """Fit thresholds and the like on evaluation rows, after every epoch.

        The best epoch's are kept in `task.json`, and its metrics are those of the fitted task.
        `outputs`, `loss_parts` and `reduce` must not depend on them.
        """
        return self

    def predict(self, data: TaskData, reduced: dict[str, np.ndarray]) -> dict[str, Any]:
        """Predict the rows of the file.

        Args:
            data: the rows.
            reduced: reduced outputs of all rows, in row order.

        Returns:
            Columns as an exported model has them (`predicted_label`, `predicted_score`, …).
        """
        return self.host().predict(data.host_rows, self.texts(data.source), reduced)

    def baseline(self, train: Any, evaluation: Any) -> Baseline | None:
        """Return the scores of evaluation rows by a model that ignores texts; None if unknown.

        The baseline of a classifier is the most frequent label of the training rows, in every row.
        """
        return None

    @abc.abstractmethod
    def measure(self, source: Any, predicted: dict[str, Any]) -> TaskResults:
        """Compare predictions, from `predict` or an exported model, with the labels."""

    def evaluated(self, source: Any, predicted: dict[str, Any]) -> Any:
        """Return the profile of the predictions of evaluation rows; None for none.

        Exported models keep it as `EvaluatedRows` of `bert_tf.tasks.profile`.
        """
        return None

    def gold_numbers(self, source: Any) -> np.ndarray | None:
        """Return the number of each row's only label, int [rows]; None for tasks without one."""
        return None

    @property
    def ceiling_rows(self) -> int:
        """Return how many rows are decoded and measured for the ceiling, spread over the file."""
        return 1000

    def known_targets(self, data: TaskData) -> TaskData:
        """Return data whose targets are all that the labels say, also if the loss knows less."""
        return data

    def gold_outputs(self, data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        """Return the outputs of a perfect model, as `outputs` and `reduce` know them.

        Args:
            data: rows with the targets that a perfect model predicts, `known_targets` or those that
                rows have in common which the model reads alike.

        Returns:
            A function from the rows of a batch, int [n], to arrays [n, …] by name.
        """
        raise NotImplementedError

    def measure_decisions(self, source: Any, predicted: dict[str, Any]) -> TaskResults:
        """Measure as `measure`, but perhaps only the ceiling's metrics, if others take long."""
        return self.measure(source, predicted)

    def is_right(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row of predictions.jsonl predicts its label."""
        return True

    def ceiling_causes(self, data: TaskData, missed: np.ndarray) -> Iterator[Cause]:
        """Yield why a perfect model is wrong, besides rows that it reads alike.

        Args:
            data: the rows that were decoded.
            missed: bool [rows of the file], those that it predicts wrong.
        """
        return iter(())


def _same_named(task: type[Task], options: Any) -> dict[str, Any]:
    """Return the values of options that a task has fields for, by name."""
    names = [field.name for field in dataclasses.fields(task)]  # type: ignore[arg-type]
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


class FinetuningLoss:
    """A `TaskLoss` of the training loop."""

    def __init__(self, task: Task):
        self._task = task

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        return self._task.weights(batch)

    def __call__(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> LossParts:
        outputs = self._task.outputs(model, batch, training=training, dropout_key=dropout_key)
        return self._task.loss_parts(outputs, batch)


def cross_entropy(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Compute -log p of the targets.

    Args:
        logits: float32 [rows, classes].
        targets: int [rows].

    Returns:
        float32 [rows].
    """
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)


def weighted_hits(hits: tf.Tensor, row_weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Sum the weights of right rows, and of all rows.

    Args:
        hits: bool [rows].
        row_weights: float32 [rows].

    Returns:
        Two float32 scalars, whose quotient is the accuracy.
    """
    right = tf.reduce_sum(tf.cast(hits, tf.float32) * row_weights)
    return right, tf.reduce_sum(row_weights)
