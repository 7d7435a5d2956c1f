"""The part of engines whose graph takes token ids: texts are tokenized on the host."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from bert_tf.base.errors import InputError
from bert_tf.config.bert_file import read_bert_document
from bert_tf.data.rows.batching import LENGTH_MULTIPLE, budgeted_batches, padded_length
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.engines.exported_folder import read_task
from bert_tf.engines.row_calls import check_finite, predict_in_calls
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS, IDS_INPUTS
from bert_tf.tasks.base.host_task import HostRows
from bert_tf.tasks.registry import declared_task, host_task_from_settings
from bert_tf.vocabulary.files import read_folder_vocab, read_lowercase

RunGraph = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
"""From the inputs of a graph to its outputs, by name."""

_WEIGHTS = "model.safetensors"


class TokenIdsEngine:
    """An `Engine` around a graph of `bert_tf.weights.onnx_graph`.

    Args:
        folder: an exported folder.
        run: runs the graph on a batch.

    Attributes:
        input_names: see `Engine`.

    Raises:
        UsageError: the model's task is not one that `task_fault` passes.
    """

    def __init__(self, folder: Path, run: RunGraph):
        self._folder = folder
        self._run = run
        task = host_task_from_settings(read_task(folder), str(folder))
        assert task is not None, "engines are chosen by `task_fault`"
        self._task = task
        vocab = read_folder_vocab(folder)
        self._tokenizer = HostTokenizer(vocab, lowercase=read_lowercase(folder, vocab))
        self.input_names: tuple[str, ...] = task.input_names

    def predict(
        self,
        columns: dict[str, list[Any]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
        on_tokens: Callable[[int, int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        """See `Engine.predict`."""

        def call(prepared: tuple[dict[str, Any], HostRows]) -> dict[str, np.ndarray]:
            texts, rows = prepared
            reduced = self._reduced(rows, batch_tokens, on_tokens)
            predicted = self._task.predict(rows, texts, reduced)
            return {name: _as_array(values) for name, values in predicted.items()}

        columns = {name: columns[name] for name in self.input_names}
        return predict_in_calls(
            columns,
            call,
            model=self._folder,
            on_rows=on_rows,
            list_inputs=self._task.list_inputs,
            prepare=self._encode,
        )

    def graph_inputs(self, columns: dict[str, list[Any]]) -> list[dict[str, np.ndarray]]:
        """What the graph is given for rows, each sequence alone; for calibration.

        Args:
            columns: as of `predict`.
        """
        given: list[dict[str, np.ndarray]] = []

        def record(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            given.append(inputs)
            return self._run(inputs)

        TokenIdsEngine(self._folder, record).predict(columns, batch_tokens=1)
        return given

    def _encode(self, texts: dict[str, np.ndarray]) -> tuple[dict[str, Any], HostRows]:
        decoded = {
            name: [
                [text.decode() for text in row] if name in self._task.list_inputs else row.decode()
                for row in column.tolist()
            ]
            for name, column in texts.items()
        }
        return decoded, self._task.encode(self._tokenizer, decoded)

    def _reduced(
        self,
        rows: HostRows,
        batch_tokens: int,
        on_tokens: Callable[[int, int], None] | None,
    ) -> dict[str, np.ndarray]:
        """What the task keeps of the outputs of all sequences."""
        sequences, more = rows.sequences, rows.inputs
        if not len(sequences):
            return self._task.reduce(rows, np.zeros(0, np.int64), self._outputs_of_none(more))
        lengths = np.diff(sequences.offsets)
        batches = budgeted_batches(lengths, budget=batch_tokens, multiple=LENGTH_MULTIPLE)
        parts = []
        for chosen in batches:
            inputs = sequences.padded(
                chosen,
                length=padded_length(lengths[chosen], LENGTH_MULTIPLE),
                pad_id=self._tokenizer.pad_id,
            )
            outputs = self._outputs(inputs | {name: more[name][chosen] for name in more})
            parts.append(self._task.reduce(rows, chosen, outputs))
            if on_tokens is not None:
                on_tokens(int(lengths[chosen].sum()), inputs["input_mask"].size)
        place = np.argsort(np.concatenate(batches), kind="stable")
        return {name: np.concatenate([part[name] for part in parts])[place] for name in parts[0]}

    def _outputs(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = self._run({name: values.astype(np.int64) for name, values in inputs.items()})
        check_finite(outputs, self._folder)
        return outputs

    def _outputs_of_none(self, more: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs [0, …], which a graph has only as those of a sequence: one of padding."""
        padding = np.zeros((1, LENGTH_MULTIPLE), np.int64)
        inputs = dict.fromkeys(IDS_INPUTS, padding)
        inputs |= {name: np.zeros((1, *values.shape[1:])) for name, values in more.items()}
        return {name: values[:0] for name, values in self._outputs(inputs).items()}


def task_fault(folder: Path) -> str | None:
    """Why engines of this kind cannot run a model, None if they can."""
    settings = read_task(folder)
    if host_task_from_settings(settings, str(folder)) is not None:
        return None
    name = declared_task(settings, str(folder)).name
    return f"cannot run models of {name}, whose steps around the graph are TensorFlow's"


def read_weights(folder: Path) -> tuple[str, Any, Mapping[str, np.ndarray]]:
    """What a graph is made of, see `onnx_model`: architecture, config and tensors.

    Raises:
        InputError: a file is damaged.
        UsageError: the config is no BERT's.
    """
    config = read_bert_document(folder / "config.json").config
    document = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    try:
        tensors = safetensors.numpy.load_file(folder / _WEIGHTS)
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(
            f"{folder / _WEIGHTS}: damaged or not a safetensors file ({error})"
        ) from None
    return document["architectures"][0], config, tensors


def _as_array(values: Any) -> np.ndarray:
    """Numbers as float32 or int32, anything else as objects."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(np.float32) if values.dtype.kind == "f" else values
    column = np.empty(len(values), object)
    column[:] = list(values)
    return column
