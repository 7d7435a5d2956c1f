"""An exported model in Python: rows in, predictions out, like `score` writes them to JSON lines."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from bert_tf.base.errors import Fault, UsageError
from bert_tf.base.library_output import quiet_in_ipython
from bert_tf.config.bert_file import read_task
from bert_tf.config.registries import AUTO
from bert_tf.config.sections.scoring import BEST, top_of
from bert_tf.data.tables.cells import cell_text, columns_of_texts, texts_of
from bert_tf.data.tables.text_files import has_surrogates
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.vocabulary_files import read_folder_vocabulary
from bert_tf.engines.engine import Engine
from bert_tf.engines.registry import exported_folder, resolve_engine
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration, imported
from bert_tf.tasks.base.host_task import HostTask
from bert_tf.tasks.base.prediction_rows import RowProbabilities, prediction_rows
from bert_tf.tasks.registry import declared_task, host_task_from_settings

_NO_TEXT = (list, dict, tuple, bytes, bytearray, memoryview, np.ndarray)
# A text, for a model with a single input, or values by column.
Row = str | Mapping[str, Any]


def load(folder: str | Path, *, engine: str = AUTO, threads: int | None = None) -> Predictor:
    """Load an exported model: `load("model").predict(["a text"])`.

    Args:
        folder: the exported model.
        engine: name of an engine, or `auto`, as in `--engine`.
        threads: threads of one operation; None for all cores.

    Raises:
        UsageError: the folder is not an exported model with a task, or the engine cannot run it.
        InputError: the model is damaged.
    """
    folder = exported_folder(folder)
    entry = resolve_engine(engine, folder)
    task = read_task(folder)
    declared = declared_task(task, str(folder))
    with quiet_in_ipython():  # most engines import TensorFlow
        loaded = entry.load(folder, threads=threads)
    return Predictor(
        folder=str(folder),
        engine_name=entry.name,
        declared=declared,
        engine=loaded,
        task=task or {},
    )


def row_checker(folder: str | Path) -> Predictor:
    """Return a predictor only for `check_row`, without an engine."""
    folder = exported_folder(folder)
    task = read_task(folder)
    return Predictor(
        folder=str(folder),
        engine_name="",
        declared=declared_task(task, str(folder)),
        engine=None,
        task=task or {},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predictor:
    """A loaded model; made by `load`.

    Attributes:
        folder: the exported model.
        engine_name: name of the engine.
        engine: the engine; None if rows are only checked.
        declared: declaration of the task.
        task: content of its `task.json`.
    """

    folder: str
    engine_name: str
    engine: Engine | None
    declared: ServedTaskDeclaration
    task: Mapping[str, Any]

    @property
    def columns(self) -> dict[str, str | list[str]]:
        """Column that each of the model's inputs was trained on."""
        columns = self.task["columns"]
        return {name: columns[name] for name in self.declared.inputs if columns.get(name)}

    @property
    def _optional(self) -> tuple[str, ...]:
        """Inputs that a row may lack."""
        return self.declared.optional_inputs(self.task)

    @overload
    def predict(
        self, rows: Sequence[Row], *, scores: str = ..., batch_tokens: int = ...
    ) -> list[dict[str, Any]]: ...

    @overload
    def predict(
        self, rows: Mapping[str, Sequence[Any]], *, scores: str = ..., batch_tokens: int = ...
    ) -> dict[str, list[Any]]: ...

    def predict(
        self,
        rows: Sequence[Row] | Mapping[str, Sequence[Any]],
        *,
        scores: str = BEST,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> list[dict[str, Any]] | dict[str, list[Any]]:
        """Predict rows, those of similar length together; results are in the order of the rows.

        Args:
            rows: texts; mappings with the columns that the model was trained on (`columns`) or its
                inputs' names (`text`, `context`, …) as keys; or one mapping from column to all its
                values. Numbers are read as texts; other columns are ignored. For a tagger, `tokens`
                may have a list of words in place of a text: these are tagged.
            scores: `best`, `all` or `top-N`, as in `--scores`.
            batch_tokens: tokens of a batch, padding included.

        Returns:
            The predictions of each row by name, like `score` adds them to JSON lines, optional ones
            included; a mapping of columns for one mapping of columns.

        Raises:
            UsageError: a row lacks a column, is not text, or cannot be predicted by the task.
            ValueError: `scores` is something else.
            InputError: the scores of the model are not finite.
        """
        top_of(scores)  # rejects others
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            raise UsageError(f"rows: expected a list of texts or rows, got {rows!r:.60}")
        if hasattr(rows, "columns"):
            raise UsageError("rows: is a table; give its columns, such as frame.to_dict('list')")
        rows = _python_values(rows)
        probabilities = RowProbabilities.of(self.declared, self.task, scores, self.folder)
        if isinstance(rows, Mapping):
            predicted_rows = self._predict(_rows_of(rows), probabilities, batch_tokens)
            names = [field.name for field in self.declared.predictions]
            names += [] if probabilities is None else [probabilities.name]
            if predicted_rows:
                names = list(predicted_rows[0])  # rows of words have one more column, their tags
            return {name: [row[name] for row in predicted_rows] for name in names}
        return self._predict(rows, probabilities, batch_tokens)

    def check_row(self, row: Row) -> None:
        """Raise UsageError for a row that cannot be predicted; needs no engine.

        Texts are tokenized where the task cannot predict those of too many tokens, or of none.
        """
        if self._words(row):
            return
        inputs = self._inputs([row])
        if self.declared.outcome_faults is None or self._encoder is None:
            return
        task, tokenizer = self._encoder
        rows = task.encode(tokenizer, {name: inputs[name] for name in task.input_names})
        for number, fault in sorted(task.text_faults(rows).items()):
            raise _unpredictable(number, fault)

    @functools.cached_property
    def _encoder(self) -> tuple[HostTask, HostTokenizer] | None:
        """The steps before the graph; None if all of them are in it."""
        task = host_task_from_settings(dict(self.task), self.folder)
        if task is None:
            return None
        vocabulary = read_folder_vocabulary(Path(self.folder))
        return task, HostTokenizer(vocabulary.vocab, lowercase=vocabulary.lowercase)

    def _predict(
        self, rows: Sequence[Row], probabilities: RowProbabilities | None, batch_tokens: int
    ) -> list[dict[str, Any]]:
        words: dict[int, list[str]] = {}
        texts: list[Row] = []
        for number, row in enumerate(rows):
            words_of_row = self._words(row)
            if words_of_row:
                words[number] = words_of_row
                texts.append(self._as_text(words_of_row))
            else:
                texts.append(row)
        inputs = self._inputs(texts)
        assert self.engine is not None
        predicted = self.engine.predict(inputs, batch_tokens=batch_tokens)
        predicted_rows = prediction_rows(self.declared.predictions, predicted)
        if self.declared.outcome_faults is not None:
            for number, fault in sorted(self.declared.outcome_faults(predicted).items()):
                raise _unpredictable(number, fault)
        for number, cells in zip(words, self._by_words(words, predicted), strict=True):
            predicted_rows[number] = cells
        if probabilities is None:
            return predicted_rows
        values = probabilities.values(predicted, inputs)
        return [
            {**row, probabilities.name: value}
            for row, value in zip(predicted_rows, values, strict=True)
        ]

    def _words(self, row: Row) -> list[str] | None:
        """Return the words of a row that lists them; None for other rows and tasks."""
        if self.declared.words is None or not isinstance(row, Mapping):
            return None
        column = self.task["columns"].get(self.declared.words.column)
        words = row.get(column, row.get(self.declared.words.column))
        is_list = isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
        return list(words) if is_list else None

    def _as_text(self, words: list[str]) -> dict[str, str]:
        assert self.declared.words is not None
        return {self.declared.words.input: " ".join(words)}

    def _by_words(
        self, words: dict[int, list[str]], predicted: Mapping[str, np.ndarray]
    ) -> list[dict[str, Any]]:
        """Return the predictions for rows of words, given by their numbers."""
        if self.declared.words is None or not words:
            return []
        of_rows = {name: values[list(words)] for name, values in predicted.items()}
        predict = imported(self.declared.words.implementation)
        columns = {**of_rows, **predict(list(words.values()), of_rows, self.task)}
        fields = (*self.declared.predictions, self.declared.words.prediction)
        return prediction_rows(fields, columns)

    def _inputs(self, rows: Sequence[Row]) -> dict[str, list[Any]]:
        columns = self.columns
        inputs: dict[str, list[Any]] = {name: [] for name in columns}
        for number, row in enumerate(rows):
            values = self._values(row, columns, number)
            fault = self.declared.row_fault and self.declared.row_fault(values)
            if fault:
                raise _unpredictable(number, fault)
            for name, value in values.items():
                inputs[name].append(value)
        return inputs

    def _values(
        self, row: Row, columns: Mapping[str, str | list[str]], number: int
    ) -> dict[str, Any]:
        """Return the value of each input in a row; optional ones may be missing: empty texts."""
        place = f"rows[{number}]"
        if isinstance(row, Mapping):
            values = {}
            for name, column in columns.items():
                is_missing = row.get(str(column), row.get(name)) is None
                if is_missing and name in self._optional:
                    values[name] = ""
                else:
                    values[name] = _value(row, name, column, place)
            return values
        if not isinstance(row, str):
            raise UsageError(
                f"{place}: is neither a text nor a mapping from column to value: {row!r:.60}"
            )
        has_lists = not all(isinstance(column, str) for column in columns.values())
        if has_lists or len(columns) > len(self._optional) + 1:
            raise UsageError(
                f"{place}: is a text, but the model reads {' and '.join(columns)}; give "
                "a mapping with a value for each"
            )
        if has_surrogates(row):
            raise UsageError(f"{place}: is not Unicode: {row!r:.60}")
        return {name: "" if name in self._optional else row for name in columns}


def _unpredictable(number: int, fault: Fault) -> UsageError:
    reason, detail = fault
    return UsageError(f"rows[{number}]: {reason}" + (f": {detail}" if detail else ""))


def _value(row: Mapping[str, Any], name: str, column: str | list[str], place: str) -> Any:
    """Return the value of an input: a text, or a list of texts from one or several columns."""
    names = [column] if isinstance(column, str) else column
    if not all(needed in row for needed in columns_of_texts(names)[0]):
        names = [name]
    values = [_python_value(row.get(key)) for key in names]
    optional = 0 if isinstance(column, str) else len(columns_of_texts(names)[1])
    while optional and _is_missing(values[-1]):  # a row with fewer texts than columns
        values.pop()
        names = names[:-1]
        optional -= 1
    if any(map(_is_missing, values)):
        missing = column if isinstance(column, str) else " and ".join(column)
        raise UsageError(f"{place}: has no value for {missing!r}, which the model reads")
    items = values[0] if not isinstance(column, str) and isinstance(values[0], list) else values
    for value in items:
        if _is_no_text(value):
            raise UsageError(f"{place}: column {names[0]!r} is not text: {value!r:.60}")
    return cell_text(values[0]) if isinstance(column, str) else texts_of(dict(row), names)


def _is_no_text(value: Any) -> bool:
    if isinstance(value, str):
        return has_surrogates(value)
    return isinstance(value, _NO_TEXT) or (value is not None and _is_missing(value))


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # nor has an array
        return False


def _python_value(value: Any) -> Any:
    """Return the value of a scalar of Arrow; others unchanged."""
    return value.as_py() if hasattr(value, "as_py") else value


def _python_values(values: Any) -> Any:
    """Return the values of an array of Arrow, whose null is no None; others unchanged."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def _rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of columns.

    Raises:
        UsageError: the values of a column are one value, or columns differ in length.
    """
    columns = {name: _python_values(values) for name, values in columns.items()}
    for name, values in columns.items():
        is_one = isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__")
        if is_one or not isinstance(values, Iterable):
            raise UsageError(
                f"columns: {name!r} is a single value, not a list of values: {values!r:.60}; give "
                f"{{{name!r}: [...]}}, or a list of rows"
            )
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"columns of different lengths: {lengths}; give one value for each row")
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
