"""The interface of engines, and the part that all share: calls with rows of similar size.

Rows are sorted by size in bytes before they are tokenized, so that each call has little padding.
Equal rows are computed once. Results are returned in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bert_tf.base.errors import InputError
from bert_tf.base.processor import map_ahead
from bert_tf.data.rows.encoded_rows import budgeted_batches
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS

# Most rows of a call, and most bytes of their texts: calls are short enough to report progress, and
# bound the memory.
ROWS_PER_CALL = 256
_BYTES_PER_CALL = 1 << 20


class EngineLoader(Protocol):
    """An engine before it is loaded."""

    @property
    def name(self) -> str:
        """Its name, which with the settings is part of the identity of a job."""
        ...

    def reads(self, name: str) -> bool:
        """Return whether it reads a file, given by its path in the model's folder."""

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        """Load a model; see `Engine` for errors.

        Args:
            folder: the model.
            threads: number of threads; None for the engine's own choice.
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
        """Predict rows, those of similar size together.

        Args:
            columns: a text per row, or a list of texts, by the names of `input_names`.
            batch_tokens: tokens of a batch, padding included.
            on_rows: called with the number of rows after each part of them.
            on_tokens: called with the tokens of batches, without and with padding, if known.

        Returns:
            The model's outputs by name, [rows, …] in the order of the rows: float32 scores, integer
            positions in characters, and texts as objects of type str.

        Raises:
            InputError: scores are not finite.
        """


class CallingEngine:
    """An `Engine` that calls a model with rows of similar size together, equal rows once.

    Attributes:
        path: path of the model, for messages.
        input_names: names of the inputs.
        list_inputs: inputs that are lists of texts.
        dealt_among: see `similar_rows`.
        calls_at_once: calls made at the same time, each in a thread.
        times: rows and tokens at once, as a multiple of those on a CPU.
        prepare: called with the texts of a call while the call before it runs; None for nothing.
    """

    path: Path
    input_names: tuple[str, ...]
    list_inputs: Collection[str] = ()
    dealt_among = 1
    calls_at_once = 1
    times = 1
    prepare: Callable[[dict[str, np.ndarray]], Any] | None = None

    def call(
        self, inputs: Any, batch_tokens: int, on_tokens: Callable[[int, int], None] | None
    ) -> dict[str, np.ndarray]:
        """Compute outputs [n, …] by name.

        Args:
            inputs: UTF-8 texts (bytes objects [n] by input name, or [n, texts] filled up with empty
                ones), or the result of `prepare` on these.
            batch_tokens: tokens of a batch, padding included.
            on_tokens: see `predict`.
        """
        raise NotImplementedError

    def predict(
        self,
        columns: dict[str, list[Any]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
        on_tokens: Callable[[int, int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        encoded = {}
        for name in self.input_names:
            encode = encoded_lists if name in self.list_inputs else encoded_texts
            encoded[name] = encode(columns[name])
        firsts, kinds = distinct_rows(list(encoded.values()))
        repeats = np.bincount(kinds, minlength=len(firsts))
        encoded = {name: texts[firsts] for name, texts in encoded.items()}
        parts: list[dict[str, np.ndarray]] = []
        sizes = row_bytes(list(encoded.values()))
        calls = similar_rows(sizes, dealt_among=self.dealt_among, times=self.times)
        inputs = ({name: texts[chosen] for name, texts in encoded.items()} for chosen in calls)
        prepared: Iterable[Any] = inputs
        if self.prepare is not None:
            prepared = map_ahead(self.prepare, inputs, threads=1, depth=1)

        def call(texts: Any) -> dict[str, np.ndarray]:
            return self.call(texts, self.times * batch_tokens, on_tokens)

        results: Iterator[dict[str, np.ndarray]] = map(call, prepared)
        if self.calls_at_once > 1:
            results = map_ahead(call, prepared, threads=self.calls_at_once)
        for chosen, outputs in zip(calls, results, strict=True):
            check_finite(outputs, self.path)
            parts.append(outputs)
            if on_rows is not None:
                on_rows(int(repeats[chosen].sum()))
        # Where each distinct row stands in the joined results of the calls, then for every row.
        place_of_kind = np.argsort(np.concatenate(calls), kind="stable")
        places = place_of_kind[kinds]
        return {name: np.concatenate([part[name] for part in parts])[places] for name in parts[0]}


def distinct_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Find the different rows.

    Args:
        columns: objects [rows] or [rows, texts].

    Returns:
        First row of each kind, int64 [kinds], and kind of each row, int64 [rows].
    """
    kinds: dict[Any, int] = {}
    numbers = []
    for values in zip(*(column.tolist() for column in columns), strict=True):
        key = tuple(tuple(value) if isinstance(value, list) else value for value in values)
        numbers.append(kinds.setdefault(key, len(kinds)))
    _, firsts = np.unique(np.array(numbers, np.int64), return_index=True)
    return firsts, np.array(numbers, np.int64)


def encoded_texts(texts: Sequence[str]) -> np.ndarray:
    """Encode texts as UTF-8: bytes objects [rows]."""
    return np.array([text.encode() for text in texts], object)


def decoded_texts(values: np.ndarray) -> np.ndarray:
    """Decode UTF-8 to str objects [rows]; other dtypes stay unchanged."""
    if values.dtype != object:
        return values
    return np.array([text.decode() for text in values], object)


def encoded_lists(lists: Sequence[Sequence[str]]) -> np.ndarray:
    """Encode lists of texts as UTF-8: bytes objects [rows, longest list, at least 1].

    Shorter lists are filled up with b"".
    """
    width = max(map(len, lists), default=1)
    encoded = np.full((len(lists), max(width, 1)), b"", object)
    for row, texts in enumerate(lists):
        encoded[row, : len(texts)] = [text.encode() for text in texts]
    return encoded


def row_bytes(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return the bytes of each row over all columns, int64 [rows].

    A text counts once for each text of the row's lists, with which it is combined.
    """
    lengths = [
        np.fromiter(map(len, texts.flat), np.int64, texts.size).reshape(texts.shape)
        for texts in columns
    ]
    lists = [values for values in lengths if values.ndim > 1]
    texts = [values for values in lengths if values.ndim == 1]
    times = np.maximum(sum((values > 0).sum(axis=1) for values in lists), 1) if lists else 1
    total = np.sum(texts, axis=0) * times if texts else 0
    return np.asarray(total + sum(values.sum(axis=1) for values in lists), np.int64)


def similar_rows(sizes: np.ndarray, *, dealt_among: int = 1, times: int = 1) -> list[np.ndarray]:
    """Partition rows into calls by their size, the largest first.

    Args:
        sizes: int64 [rows], bytes.
        dealt_among: number of calls that neighbors in size are dealt among, so that calls side by
            side end together.
        times: multiple of the usual size of a call.

    Returns:
        int64 row numbers of each call.
    """
    groups = budgeted_batches(
        sizes,
        budget=times * dealt_among * _BYTES_PER_CALL,
        max_rows=times * dealt_among * ROWS_PER_CALL,
    )
    calls = [group[first::dealt_among] for group in groups for first in range(dealt_among)]
    return [call for call in calls if len(call)] or [np.zeros(0, np.int64)]


def check_finite(outputs: Mapping[str, np.ndarray], model: Path) -> None:
    """Raise InputError if an output has numbers that are not finite."""
    for name, values in outputs.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InputError(
                f"{model}: {name} is not a number for some rows; the weights are damaged "
                "or training diverged"
            )
