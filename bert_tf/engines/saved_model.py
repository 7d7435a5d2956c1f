"""The engine that runs a SavedModel with TensorFlow."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations that the graph uses

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.plain_path import plain_path
from bert_tf.data.rows.batching import LENGTH_MULTIPLE, padded_tokens
from bert_tf.engines.registry import BFLOAT16, FLOAT32
from bert_tf.engines.row_calls import predict_in_calls
from bert_tf.serving.signatures import (
    BATCH_TOKENS,
    BATCHED,
    DEFAULT_BATCH_TOKENS,
    IDS,
    NOT_OF_ROWS,
    ROW_TOKENS,
)

_TO_BFLOAT16 = "auto_mixed_precision_onednn_bfloat16"
_REWRITING = threading.Lock()
SAVED_MODEL, FINGERPRINT = "saved_model.pb", "fingerprint.pb"


class SavedModelEngine:
    """A SavedModel written by `bert-pipeline export`; an `Engine`.

    Its graph tokenizes, sorts the rows of a call by tokens and runs them in batches.

    Args:
        path: the exported folder.
        precision: of matrix products and most of what is between them.

    Attributes:
        path: as given.
        input_names: columns of texts that `predict` needs.

    Raises:
        UsageError: the SavedModel is not one of this tool.
        InputError: the SavedModel is damaged.
    """

    def __init__(self, path: str | Path, *, precision: str = FLOAT32):
        self.path = Path(path)
        self._precision = precision
        try:
            # The signature alone does not keep its variables alive.
            with plain_path(self.path) as plain:
                self._loaded: Any = tf.saved_model.load(str(plain))
        except (OSError, ValueError, tf.errors.OpError) as error:
            first_line = str(error).partition("\n")[0]
            raise InputError(
                f"{self.path}: the SavedModel cannot be loaded ({first_line}); export it again"
            ) from None
        if BATCHED not in self._loaded.signatures:
            if IDS in self._loaded.signatures:
                raise UsageError(
                    f"{self.path}: takes ids of tokens, not texts (it was made with --inputs ids); "
                    "make one that takes texts with bert-pipeline export --inputs text"
                )
            raise UsageError(
                f"{self.path}: a SavedModel of another tool or version; "
                "make one with bert-pipeline export"
            )
        self._batched = self._loaded.signatures[BATCHED]
        inputs = dict(self._batched.structured_input_signature[1])
        del inputs[BATCH_TOKENS]
        self.input_names: tuple[str, ...] = tuple(sorted(inputs))
        self._list_inputs = {name for name, spec in inputs.items() if spec.shape.rank > 1}

    def signature(self, name: str) -> Any:
        """A function of the SavedModel."""
        return self._loaded.signatures[name]

    def predict(
        self,
        columns: dict[str, list[Any]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
        on_tokens: Callable[[int, int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        """See `Engine.predict`."""
        budget = tf.constant(batch_tokens, tf.int32)

        def call(texts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            tensors = {name: tf.constant(column, tf.string) for name, column in texts.items()}
            with _computing_in(self._precision):
                outputs = self._batched(**tensors, **{BATCH_TOKENS: budget})
            lengths = outputs.pop(ROW_TOKENS, None)
            if lengths is not None and on_tokens is not None:
                counts = lengths.numpy()
                padded = padded_tokens(counts, budget=batch_tokens, multiple=LENGTH_MULTIPLE)
                on_tokens(int(counts.sum()), padded)
            return {
                name: _decoded(tensor.numpy())
                for name, tensor in outputs.items()
                if name not in NOT_OF_ROWS
            }

        columns = {name: columns[name] for name in self.input_names}
        return predict_in_calls(
            columns, call, model=self.path, on_rows=on_rows, list_inputs=self._list_inputs
        )


def load(folder: Path, *, threads: int | None, precision: str) -> SavedModelEngine:
    """See `Engine`; threads can be set before TensorFlow's first operation only."""
    if threads is not None:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    return SavedModelEngine(folder, precision=precision)


@contextlib.contextmanager
def _computing_in(precision: str) -> Iterator[None]:
    """In bfloat16, TensorFlow's graph optimizer rewrites functions that are called meanwhile.

    That is set for a process: one thread at a time, and not for what is trained after scoring.
    """
    if precision != BFLOAT16:
        yield
        return
    with _REWRITING:
        tf.config.optimizer.set_experimental_options({_TO_BFLOAT16: True})
        try:
            yield
        finally:
            tf.config.optimizer.set_experimental_options({_TO_BFLOAT16: False})


def _decoded(values: np.ndarray) -> np.ndarray:
    if values.dtype != object:
        return values
    return np.array([text.decode() for text in values], object)
