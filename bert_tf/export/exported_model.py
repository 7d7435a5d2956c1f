"""An exported SavedModel, loaded to predict columns of texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations that the graph uses

from bert_tf.base.checksums import check_sums
from bert_tf.base.errors import InputError, UsageError, no_folder
from bert_tf.base.plain_path import plain_path
from bert_tf.serving.text_module import BATCH_TOKENS, BATCHED, DEFAULT_BATCH_TOKENS

SAVED_MODEL, FINGERPRINT = "saved_model.pb", "fingerprint.pb"
TASK = "task.json"
_ROWS_PER_CALL = 256
_BYTES_PER_CALL = 1 << 20


class ExportedModel:
    """A SavedModel written by `bert-pipeline export`.

    Args:
        path: the exported folder.

    Attributes:
        path: as given.
        task: content of its `task.json`, None for a model that was pretrained only.
        input_names: columns of texts that `predict` needs.

    Raises:
        UsageError: the folder holds no SavedModel, or not one of this tool.
        InputError: the SavedModel is damaged, or not the one that its `SHA256SUMS` vouches for.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        check_is_exported(self.path)
        self.task = read_task(self.path)
        check_sums(self.path, _is_of_saved_model)
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
            raise UsageError(
                f"{self.path}: a SavedModel of another tool or version; "
                "make one with bert-pipeline export"
            )
        self._batched = self._loaded.signatures[BATCHED]
        inputs = set(self._batched.structured_input_signature[1]) - {BATCH_TOKENS}
        order = ("text", "text_pair", "question", "context")
        self.input_names: tuple[str, ...] = tuple(name for name in order if name in inputs)

    def predict(
        self,
        columns: dict[str, list[str]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        """Predicts rows.

        Texts of similar length go into the graph together, which sorts them by pieces and runs them
        in batches of `batch_tokens`; the results are in the order of the rows.

        Args:
            columns: texts by the names of `input_names`, all of one length.
            batch_tokens: pieces a batch, padding included.
            on_rows: called with the number of rows after each part of them.

        Returns:
            The signature's outputs whose first axis is the row; texts as objects of type str.

        Raises:
            InputError: the model's scores are not numbers.
        """
        encoded = {
            name: np.array([text.encode() for text in columns[name]], object)
            for name in self.input_names
        }
        parts: list[dict[str, np.ndarray]] = []
        calls = similar_rows(row_bytes(list(encoded.values())))
        for chosen in calls:
            parts.append(self._call(encoded, chosen, batch_tokens))
            if on_rows is not None:
                on_rows(len(chosen))
        place = np.argsort(np.concatenate(calls), kind="stable")
        return {name: np.concatenate([part[name] for part in parts])[place] for name in parts[0]}

    def _call(
        self, encoded: dict[str, np.ndarray], chosen: np.ndarray, batch_tokens: int
    ) -> dict[str, np.ndarray]:
        outputs = self._batched(
            **{name: tf.constant(texts[chosen], tf.string) for name, texts in encoded.items()},
            **{BATCH_TOKENS: tf.constant(batch_tokens, tf.int32)},
        )
        arrays = {}
        for name, tensor in outputs.items():
            values = tensor.numpy()
            if name == "labels":
                continue
            if values.dtype == object:
                values = np.array([text.decode() for text in values], object)
            elif values.dtype.kind == "f" and not np.isfinite(values).all():
                raise InputError(
                    f"{self.path}: {name} is not a number for some rows; the weights are damaged "
                    "or training diverged"
                )
            arrays[name] = values
        return arrays


def check_is_exported(path: Path) -> None:
    """Refuses what is not an exported SavedModel.

    Raises:
        UsageError: there is no such folder, or it holds no SavedModel.
    """
    if not path.is_dir():
        raise no_folder(path, "model directory")
    if (path / SAVED_MODEL).is_file():
        return
    if (path / "checkpoints").is_dir() or (path / "best").is_dir():
        raise UsageError(
            f"{path}: is a run, not an exported model; "
            f"run bert-pipeline export --run {path} --output DIR first"
        )
    raise UsageError(
        f"{path}: is not an exported model (it has no {SAVED_MODEL}); "
        "make one with bert-pipeline export --run RUN --output DIR"
    )


def read_task(path: Path) -> dict[str, Any] | None:
    """The content of a model's `task.json`, None if it has none.

    Raises:
        InputError: the file is damaged, or not the one that `SHA256SUMS` vouches for.
    """
    check_sums(path, {TASK}.__contains__)
    file = path / TASK
    if not file.is_file():
        return None
    try:
        task = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file}: damaged ({error}); export the model again") from None
    if not isinstance(task, dict):
        raise InputError(f"{file}: damaged; expected a JSON object; export the model again")
    return task


def _is_of_saved_model(name: str) -> bool:
    return name in (SAVED_MODEL, FINGERPRINT) or name.startswith(("assets/", "variables/"))


def row_bytes(columns: list[np.ndarray]) -> np.ndarray:
    """Bytes of each row over all columns, int64 [rows]."""
    return np.sum([np.array([len(text) for text in texts], np.int64) for texts in columns], axis=0)


def similar_rows(sizes: np.ndarray) -> list[np.ndarray]:
    """Deals rows of similar size to calls of the graph, the biggest first.

    Args:
        sizes: int64 [rows], bytes.

    Returns:
        int64 row numbers of each call; one call without rows if there are none.
    """
    order = np.argsort(-sizes, kind="stable")
    calls = []
    begin = 0
    while begin < len(order):
        fitting = _BYTES_PER_CALL // max(1, int(sizes[order[begin]]))
        count = min(_ROWS_PER_CALL, max(1, fitting))
        calls.append(order[begin : begin + count])
        begin += count
    return calls or [order]
