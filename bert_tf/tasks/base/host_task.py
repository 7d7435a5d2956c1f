"""A task around a graph that takes token ids, on the host, without TensorFlow or Keras."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from bert_tf.base.arrays import group_means
from bert_tf.base.errors import Fault
from bert_tf.config.sections.finetuning import HEAD
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import pack_host_pairs, pack_host_texts
from bert_tf.data.text.host_wordpiece import Tokenizer
from bert_tf.serving.signatures import LOST_TOKENS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.explained import Outputs, PlacedRow, Target

Columns = TypeVar("Columns")
_LEARNED = "learned"
_KEPT_IF_SET = "kept if set"


def learned(before: Any) -> Any:
    """Declare a field that follows from the training rows.

    Args:
        before: its value until they are read.
    """
    return dataclasses.field(default=before, metadata={_LEARNED: True})


def kept_if_set(default: Any) -> Any:
    """Declare a field that a `task.json` has only if it is not the default.

    So models of a release without the field, and later ones that do not use it, have equal files.
    """
    return dataclasses.field(default=default, metadata={_KEPT_IF_SET: True})


def added_fields(task: type, base: type) -> list[dataclasses.Field]:
    """Return the fields that a subclass of a dataclass adds to its base."""
    names = {field.name for field in dataclasses.fields(base)}
    return [field for field in dataclasses.fields(task) if field.name not in names]


def fields_as_settings(fields: Iterable[dataclasses.Field], task: Any) -> dict[str, Any]:
    """Return values of fields by name, ready for JSON: tuples become lists, dataclasses objects.

    Args:
        fields: fields of `task`; those of `kept_if_set` with their default are left out.
        task: a dataclass: a task, or the value of one of its fields.
    """
    settings = {}
    for field in fields:
        value = getattr(task, field.name)
        if value != field.default or _KEPT_IF_SET not in field.metadata:
            settings[field.name] = _as_setting(value)
    return settings


def _as_setting(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return fields_as_settings(dataclasses.fields(value), value)
    return list(value) if isinstance(value, tuple) else value


def fields_from_settings(
    fields: Iterable[dataclasses.Field], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a dataclass's arguments by name, with tuples for lists.

    Settings with defaults may be missing, as in an earlier `task.json`, unless they are `learned`.

    Args:
        fields: fields of the dataclass.
        settings: content of a `task.json`; other keys are ignored.

    Raises:
        KeyError: a setting is missing.
    """
    values = {
        field.name: settings[field.name]
        for field in fields
        if field.name in settings
        or field.default is dataclasses.MISSING
        or _LEARNED in field.metadata
    }
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }


def named_columns(columns: type[Columns], config: Any, **others: Any) -> Columns:
    """Fill a dataclass of columns, field `text` from the option `text_column` and so on.

    Args:
        columns: the dataclass.
        config: the options; a class of options for the defaults.
        **others: values of fields without such an option.
    """
    names = {field.name for field in dataclasses.fields(columns)} - others.keys()  # type: ignore[arg-type]
    return columns(**{name: getattr(config, f"{name}_column") for name in names}, **others)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostRows:
    """Rows of texts as sequences of a graph; a row may have several.

    Attributes:
        inputs: further inputs of the graph by name, int64 [sequences, …].
        details: values that the task needs to turn outputs into predictions.
        max_rows: most sequences of a batch; None sets no limit.
    """

    sequences: EncodedRows
    inputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    details: Any = None
    max_rows: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostTask(abc.ABC):
    """The steps of a task before and after its graph (see `bert_tf.weights.onnx_graph`).

    Engines that run a graph of token ids (ONNX, OpenVINO and the like) have no string operations,
    so the steps around it are written here a second time, in NumPy. Tests compare them with the
    SavedModel, which does everything in its graph.

    Fields of a subclass are settings of `task.json` by the same name.
    """

    declaration: ClassVar[ServedTaskDeclaration]
    list_inputs: ClassVar[tuple[str, ...]] = ()  # of `input_names`, those that are lists of texts

    input_names: tuple[str, ...]
    max_seq_length: int  # [CLS] and [SEP] included

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Make the task of a model from its `task.json`.

        Raises:
            KeyError: a setting is missing.
        """
        columns = settings["columns"]
        names = tuple(name for name in cls.declaration.inputs if columns[name] is not None)
        fields = [field for field in dataclasses.fields(cls) if field.name != "input_names"]
        return cls(input_names=names, **fields_from_settings(fields, settings))

    @abc.abstractmethod
    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        """Turn rows into sequences; there may be no row, and rows without a sequence.

        Args:
            tokenizer: a tokenizer with the model's vocabulary.
            columns: the text of each row by the names of `input_names`; or a list of texts, filled
                up with empty ones to the same length in all rows.
        """

    def text_faults(self, rows: HostRows) -> dict[int, Fault]:
        """Return the reasons in their tokens why rows cannot be predicted, by number of the row."""
        del rows
        return {}

    def targets(
        self, placed: PlacedRow, outputs: Outputs, predicted: Mapping[str, Any]
    ) -> list[Target]:
        """Return the sums of logits that explain a prediction.

        A task that does not override this is not explained.

        Args:
            placed: the row, its sequences and words.
            outputs: outputs of the graph, [sequences, …] by name.
            predicted: the prediction, by output of an exported model.
        """
        return []

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Keep the part of a batch's outputs that `predict` needs.

        Args:
            rows: all rows, as `encode` returned them.
            chosen: int [n], the batch's sequences; n may be 0.
            outputs: outputs of the graph, [n, …] by name.

        Returns:
            Arrays [n, …] by name, whose other axes do not depend on the batch.
        """
        return outputs

    @abc.abstractmethod
    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        """Return an exported model's outputs, [rows] by name.

        Args:
            rows: result of `encode`.
            columns: argument of `encode`.
            reduced: results of `reduce` for all sequences, joined in their order.
        """


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableHost(HostTask):
    """Predicts from one vector of logits for each sequence; averages the logits of windows."""

    long_texts: str = HEAD
    is_pair_optional: bool = False  # whether an empty second text means a single text

    @abc.abstractmethod
    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """Predict [rows] by name, from logits float32 [rows, logits]."""

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        first, *second = (tokenizer.tokenize_texts(columns[name]) for name in self.input_names)
        limits: dict[str, Any] = {"max_seq_length": self.max_seq_length, "tokenizer": tokenizer}
        if second:
            pairs = pack_host_pairs(
                first, *second, **limits, is_second_optional=self.is_pair_optional
            )
            return HostRows(sequences=pairs)
        return HostRows(sequences=pack_host_texts(first, method=self.long_texts, **limits))

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        logits = reduced["logits"]
        owners = rows.sequences.owners
        lost_tokens = rows.sequences.lost_tokens
        assert lost_tokens is not None
        if owners is not None:
            firsts, means = group_means({"logits": logits}, owners)
            logits = means["logits"]
            lost_tokens = lost_tokens[firsts]
        return {**self.predictions(logits), LOST_TOKENS: lost_tokens.astype(np.int32)}
