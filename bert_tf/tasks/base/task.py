"""The base of tasks to fine-tune for: rows in, a head, a loss, metrics and predictions out.

A new task is one folder with a `TaskDeclaration` and a subclass of `Task`, and a line in
`registry.py`. `TableTask` is the base for rows of a text, or a pair, with a label.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypedDict

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity
from bert_tf.config.sections import EvaluateConfig, FinetuneConfig
from bert_tf.data.rows.holdout import RowGroups
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.file_rows import FileRows
from bert_tf.data.tables.judged import ReadValues
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.base.ceiling import Cause
from bert_tf.tasks.base.declaration import TaskDeclaration
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.served_task import ServedTask
from bert_tf.tasks.base.task_data import ROW_WEIGHTS, TaskData
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.model_directory import ModelDirectory

RowsCheck = Callable[[Sequence[FileRows]], None]
"""Validates the rows of all files before training; raises to reject them."""


def accept_any_rows(sources: Sequence[FileRows]) -> None:
    """Reject nothing."""


class Reading(TypedDict):
    """Arguments of the functions that read training rows, the same for all tasks.

    Attributes:
        dialect: the form of the file.
        max_rows: number of its first rows to read; 0 for all.
        console: gets warnings about the rows.
    """

    dialect: TableDialect
    max_rows: int
    console: Console


class Baseline(NamedTuple):
    """The best prediction that ignores the texts.

    Attributes:
        metrics: its known metrics, by name.
        prediction: a description of it, to follow "is no better than".
    """

    metrics: Mapping[str, float]
    prediction: str


class Task(ServedTask):
    """A task to fine-tune for, with all that was learned from its training data (labels, …)."""

    declaration: ClassVar[TaskDeclaration]

    # For the ceiling of labeled rows, see `bert_tf.tasks.running.ceiling`.
    ceiling_metrics: ClassVar[tuple[str, ...]] = ()  # the lowest is reported; () without a ceiling
    perfect_metric: ClassVar[float] = 1.0  # their value if all predictions are right
    length_flag: ClassVar[str] = "--max-seq-length"  # the option that cuts the model's input

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
        """Make the task of another library's weights, with defaults; None if they do not fit."""
        return None

    @classmethod
    def default_options(cls, directory: ModelDirectory) -> dict[str, Any]:
        """Return the defaults of `options_of` for weights of another library."""
        options = cls.declaration.options
        longest = directory.config.max_position_embeddings
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
        """Return groups of rows to hold out together or not at all, and the classes of rows."""

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
            batch: a result of `TaskData.batch`, as tensors.
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
        """The number of rows to decode and measure for the ceiling, spread over the file."""
        return 1000

    def known_targets(self, data: TaskData) -> TaskData:
        """Return data with complete targets, where the loss uses only a part of the labels."""
        return data

    def gold_outputs(self, data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        """Return the outputs of a perfect model, in the form of the results of `outputs`.

        Args:
            data: rows with the targets that a perfect model predicts: those of `known_targets`, or
                of `with_common_targets`.

        Returns:
            A function from the rows of a batch, int [n], to arrays [n, …] by name.
        """
        raise NotImplementedError

    def measure_decisions(self, source: Any, predicted: dict[str, Any]) -> TaskResults:
        """Measure like `measure`. A task may leave out slow metrics that its ceiling ignores."""
        return self.measure(source, predicted)

    def is_right(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row of predictions.jsonl predicts its label."""
        return True

    def ceiling_causes(self, data: TaskData, missed: np.ndarray) -> Iterator[Cause]:
        """Yield the reasons why a perfect model is wrong, besides rows that it reads alike.

        Args:
            data: the rows that were decoded.
            missed: bool [rows of the file], whether it predicts them wrong.
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
