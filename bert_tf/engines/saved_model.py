"""The engine that runs a SavedModel with TensorFlow."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import plain_path
from bert_tf.base.libraries import import_tensorflow_text
from bert_tf.config.registries import BFLOAT16, FLOAT32
from bert_tf.cpu.cores import settle_threads
from bert_tf.data.rows.encoded_rows import LENGTH_MULTIPLE, padded_tokens
from bert_tf.engines.engine import CallingEngine, decoded_texts
from bert_tf.engines.registry import FROZEN_WEIGHTS
from bert_tf.serving.signatures import BATCH_TOKENS, BATCHED, IDS, NOT_OF_ROWS, ROW_TOKENS
from bert_tf.training.arithmetic import has_accelerator

import_tensorflow_text()  # registers the operations that the graph uses

_TO_BFLOAT16 = "auto_mixed_precision_onednn_bfloat16"  # option of TensorFlow's graph optimizer
_CALLS_AT_ONCE = 2  # see `_divide_threads`
SAVED_MODEL = "saved_model.pb"
FINGERPRINT = "fingerprint.pb"


def lay_out_weights_once() -> None:
    """Let TensorFlow's matrix products lay out their weights once, if they are declared frozen.

    Saves a twentieth of the time in bfloat16. TensorFlow reads the setting before its first
    product, for the life of the process; a setting in the environment is kept.
    """
    if os.environ.get(FROZEN_WEIGHTS):
        os.environ.setdefault("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "true")


class SavedModelEngine(CallingEngine):
    """A SavedModel written by `bert-pipeline export`; its graph tokenizes and batches.

    Args:
        path: folder of the SavedModel.
        precision: precision of matrix products and most operations between them.
        calls_at_once: calls of the graph that run side by side.

    Raises:
        InputError: the SavedModel is damaged.
        UsageError: it does not take texts, or is from another tool.
    """

    # The same for any number of threads, because rounding depends on the rows of a batch.
    dealt_among = _CALLS_AT_ONCE

    def __init__(self, path: str | Path, *, precision: str = FLOAT32, calls_at_once: int = 1):
        self.path = Path(path)
        self._precision = precision
        self.calls_at_once = calls_at_once
        self._counting = threading.Lock()
        try:
            # The loaded object is kept, because a signature does not keep its variables alive.
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
                f"{self.path}: a SavedModel of another tool or version; make one with "
                "bert-pipeline export"
            )
        self._batched = self._loaded.signatures[BATCHED]
        inputs = dict(self._batched.structured_input_signature[1])
        del inputs[BATCH_TOKENS]
        self.input_names: tuple[str, ...] = tuple(sorted(inputs))
        self.list_inputs = {name for name, spec in inputs.items() if spec.shape.rank > 1}

    def signature(self, name: str) -> Any:
        """Return a signature by its name."""
        return self._loaded.signatures[name]

    def call(
        self,
        inputs: dict[str, np.ndarray],
        batch_tokens: int,
        on_tokens: Callable[[int, int], None] | None,
    ) -> dict[str, np.ndarray]:
        tensors = {name: tf.constant(column, tf.string) for name, column in inputs.items()}
        is_bfloat16 = self._precision == BFLOAT16
        with _rewriting() if is_bfloat16 else contextlib.nullcontext():
            outputs = self._batched(
                **tensors, **{BATCH_TOKENS: tf.constant(batch_tokens, tf.int32)}
            )
        lengths = outputs.pop(ROW_TOKENS, None)
        if lengths is not None and on_tokens is not None:
            counts = lengths.numpy()
            padded = padded_tokens(counts, budget=batch_tokens, multiple=LENGTH_MULTIPLE)
            with self._counting:
                on_tokens(int(counts.sum()), padded)
        return {
            name: decoded_texts(tensor.numpy())
            for name, tensor in outputs.items()
            if name not in NOT_OF_ROWS
        }


def load(folder: Path, *, threads: int | None, precision: str) -> SavedModelEngine:
    """Load a model; threads can only be set before TensorFlow's first operation."""
    if precision == BFLOAT16:
        lay_out_weights_once()
    calls_at_once = 1 if threads is None else _divide_threads(threads)
    return SavedModelEngine(folder, precision=precision, calls_at_once=calls_at_once)


def _divide_threads(threads: int) -> int:
    """Configure TensorFlow's threads for two calls side by side, a tenth faster than one.

    Returns:
        The number of calls.
    """
    calls = 1 if has_accelerator() or threads < _CALLS_AT_ONCE else _CALLS_AT_ONCE
    is_settled = settle_threads(threads // calls, operations_at_once=calls)
    return calls if is_settled else 1


_LOCK = threading.Lock()  # guards `_inside` and the option
_inside = 0  # calls of `_rewriting` that have not ended


@contextlib.contextmanager
def _rewriting() -> Iterator[None]:
    """Let TensorFlow's graph optimizer rewrite calls inside to bfloat16.

    The option belongs to the process, and is off again when the last call ends.
    """
    global _inside
    with _LOCK:
        _inside += 1
        tf.config.optimizer.set_experimental_options({_TO_BFLOAT16: True})
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside:
                tf.config.optimizer.set_experimental_options({_TO_BFLOAT16: False})
