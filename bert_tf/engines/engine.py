"""The interface of engines, and the part that all share: calls with rows of similar size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bert_tf.base.errors import InputError
from bert_tf.base.processor import map_ahead
from bert_tf.data.rows.encoded_rows import budgeted_batches
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS

ROWS_PER_CALL = 256
_BYTES_PER_CALL = 1 << 20


class EngineLoader(Protocol):
    """An engine before it is loaded; `name`, with the settings, is part of a job's identity."""

    @property
    def name(self) -> str: ...

    def reads(self, name: str) -> bool:
        """Whether it reads a file, named by its path in the model's folder."""

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        """Loads a model; raises as `Engine`.

        Args:
            threads: of the process for the engine; None leaves the number to the engine.
            is_checked: whether its files have been compared with its `SHA256SUMS` already.
        """


class Engine(Protocol):
    """An exported model, loaded to predict rows of texts.

    Its module's function `load(folder: Path, *, threads: int | None, precision: str) -> Engine`
    raises UsageError for folders of other tools, and InputError for damaged models.
    """

    input_names: tuple[str, ...]

    def predict(
        self,
        columns: dict[str, list[Any]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
        on_tokens: Callable[[int, int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        """Predicts rows, those of similar size together.

        Args:
            columns: by the names of `input_names` a text per row, or a list of texts.
            batch_tokens: tokens per batch, padding included.
            on_rows: called with the number of rows after each part of them.
            on_tokens: called with the tokens of batches, without and with padding, by an engine
                that knows them.

        Returns:
            The model's outputs by name, [rows, …] in the order of the rows: float32 scores, integer
            positions in characters, and texts as objects of type str.

        Raises:
            InputError: the model's scores are not numbers.
        """


class CallingEngine:
    """An `Engine` whose `call` computes rows of similar size, see `predict_in_calls`."""

    path: Path
    input_names: tuple[str, ...]
    list_inputs: Collection[str] = ()
    dealt_among = 1
    calls_at_once = 1
    prepare: Callable[[dict[str, np.ndarray]], Any] | None = None

    def call(
        self, inputs: Any, batch_tokens: int, on_tokens: Callable[[int, int], None] | None
    ) -> dict[str, np.ndarray]:
        """Outputs by name of the rows of a call, or of the result of `prepare` on them."""
        raise NotImplementedError

    def predict(
        self,
        columns: dict[str, list[Any]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
        on_tokens: Callable[[int, int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        return predict_in_calls(
            {name: columns[name] for name in self.input_names},
            lambda inputs: self.call(inputs, batch_tokens, on_tokens),
            model=self.path,
            on_rows=on_rows,
            list_inputs=self.list_inputs,
            prepare=self.prepare,
            dealt_among=self.dealt_among,
            calls_at_once=self.calls_at_once,
        )


def predict_in_calls(
    columns: Mapping[str, Sequence[Any]],
    call: Callable[[Any], dict[str, np.ndarray]],
    *,
    model: Path,
    on_rows: Callable[[int], None] | None = None,
    list_inputs: Collection[str] = (),
    prepare: Callable[[dict[str, np.ndarray]], Any] | None = None,
    dealt_among: int = 1,
    calls_at_once: int = 1,
) -> dict[str, np.ndarray]:
    """Calls a model with rows of similar size together, equal rows once; keeps the order of rows.

    Args:
        call: from UTF-8 texts (bytes objects [n] by input name, or [n, texts] filled up with empty
            ones), or from the result of `prepare` on these, to outputs [n, …] by name.
        prepare: called with the texts of a call while the call before it runs.
        calls_at_once: calls made at the same time, each in a thread.

    Raises:
        InputError: outputs of floating point are not all finite.
    """
    encoded = {
        name: encoded_lists(values) if name in list_inputs else encoded_texts(values)
        for name, values in columns.items()
    }
    firsts, numbers = distinct_rows(list(encoded.values()))
    rows_of = np.bincount(numbers, minlength=len(firsts))
    encoded = {name: texts[firsts] for name, texts in encoded.items()}
    parts: list[dict[str, np.ndarray]] = []
    calls = similar_rows(row_bytes(list(encoded.values())), dealt_among=dealt_among)
    inputs = ({name: texts[chosen] for name, texts in encoded.items()} for chosen in calls)
    prepared: Iterable[Any] = inputs
    results: Iterator[dict[str, np.ndarray]]
    if prepare is not None:
        prepared = map_ahead(prepare, inputs, threads=1, depth=1)
    if calls_at_once > 1:
        results = map_ahead(call, prepared, threads=calls_at_once)
    else:
        results = map(call, prepared)
    for chosen, outputs in zip(calls, results, strict=True):
        check_finite(outputs, model)
        parts.append(outputs)
        if on_rows is not None:
            on_rows(int(rows_of[chosen].sum()))
    place = np.argsort(np.concatenate(calls), kind="stable")[numbers]
    return {name: np.concatenate([part[name] for part in parts])[place] for name in parts[0]}


def distinct_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """First row of each kind, int64 [kinds], and the kind of each row, int64 [rows]."""
    keys = zip(*(column.tolist() for column in columns), strict=True)
    kinds: dict[Any, int] = {}
    numbers = [
        kinds.setdefault(tuple(tuple(v) if isinstance(v, list) else v for v in key), len(kinds))
        for key in keys
    ]
    found, firsts = np.unique(np.array(numbers, np.int64), return_index=True)
    assert len(found) == len(kinds)
    return firsts, np.array(numbers, np.int64)


def encoded_texts(texts: Sequence[str]) -> np.ndarray:
    return np.array([text.encode() for text in texts], object)


def decoded_texts(values: np.ndarray) -> np.ndarray:
    """UTF-8 as text, str objects [rows]; other dtypes unchanged."""
    if values.dtype != object:
        return values
    return np.array([text.decode() for text in values], object)


def encoded_lists(lists: Sequence[Sequence[str]]) -> np.ndarray:
    """UTF-8, bytes objects [rows, longest list, at least 1], filled up with empty texts."""
    width = max(map(len, lists), default=1)
    encoded = np.full((len(lists), max(width, 1)), b"", object)
    for row, texts in enumerate(lists):
        encoded[row, : len(texts)] = [text.encode() for text in texts]
    return encoded


def row_bytes(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Bytes of each row over all columns, int64 [rows]; a text counts with each of a list's."""
    lengths = [
        np.fromiter(map(len, texts.flat), np.int64, texts.size).reshape(texts.shape)
        for texts in columns
    ]
    lists = [values for values in lengths if values.ndim > 1]
    texts = [values for values in lengths if values.ndim == 1]
    times = np.maximum(sum((values > 0).sum(axis=1) for values in lists), 1) if lists else 1
    total = np.sum(texts, axis=0) * times if texts else 0
    return np.asarray(total + sum(values.sum(axis=1) for values in lists), np.int64)


def similar_rows(sizes: np.ndarray, *, dealt_among: int = 1) -> list[np.ndarray]:
    """Row numbers of each call, int64; rows of similar size (bytes) together, the biggest first.

    Deals neighbors in size among `dealt_among` calls: calls side by side end together.
    """
    groups = budgeted_batches(
        sizes, budget=dealt_among * _BYTES_PER_CALL, max_rows=dealt_among * ROWS_PER_CALL
    )
    calls = [group[first::dealt_among] for group in groups for first in range(dealt_among)]
    return [call for call in calls if len(call)] or [np.zeros(0, np.int64)]


def check_finite(outputs: Mapping[str, np.ndarray], model: Path) -> None:
    for name, values in outputs.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InputError(
                f"{model}: {name} is not a number for some rows; the weights are damaged "
                "or training diverged"
            )
