"""Base of engines whose graph takes token ids: texts are tokenized on the host."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import safetensors
import safetensors.numpy

from bert_tf.base.errors import InputError
from bert_tf.base.json_files import read_json_object
from bert_tf.config.bert_file import CONFIG, read_bert_document, read_task
from bert_tf.data.rows.encoded_rows import LENGTH_MULTIPLE, Batching
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.vocabulary_files import read_folder_vocabulary
from bert_tf.engines.engine import CallingEngine, check_finite
from bert_tf.engines.registry import EngineEntry
from bert_tf.serving.signatures import IDS_INPUTS, ONNX_FILE, OPENVINO_FILE
from bert_tf.tasks.base.host_task import HostRows
from bert_tf.tasks.registry import declared_task, host_task_from_settings
from bert_tf.weights.graph_names import MOST_BYTES, NAMES, OUTPUTS, POSITIONS

# Maps the inputs of a graph to its outputs, by name.
RunGraph = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]

_WEIGHTS = "model.safetensors"


class TokenIdsEngine(CallingEngine):
    """An `Engine` whose `run` computes a graph of `bert_tf.weights.onnx_graph` for a batch.

    Args:
        folder: the exported model.
        run: computes the graph.
        *faults: exceptions that `run` raises for a damaged graph.

    Attributes:
        has_few_shapes: whether batches have at most eight shapes, see `Batching`.
    """

    has_few_shapes: ClassVar[bool] = False

    def __init__(self, folder: Path, run: RunGraph, *faults: type[Exception]):
        self.path = folder
        self._run = run
        self._faults = faults
        task = host_task_from_settings(read_task(folder), str(folder))
        assert task is not None, "engines are chosen by `model_fault`"
        self._task = task
        vocabulary = read_folder_vocabulary(folder)
        self._tokenizer = HostTokenizer(vocabulary.vocab, lowercase=vocabulary.lowercase)
        self.input_names = task.input_names
        self.list_inputs = task.list_inputs
        self.prepare = self._encode

    def call(
        self,
        inputs: tuple[dict[str, Any], HostRows],
        batch_tokens: int,
        on_tokens: Callable[[int, int], None] | None,
    ) -> dict[str, np.ndarray]:
        texts, rows = inputs
        reduced = self._reduced(rows, batch_tokens, on_tokens)
        predicted = self._task.predict(rows, texts, reduced)
        return {name: _as_array(values) for name, values in predicted.items()}

    def graph_inputs(self, columns: dict[str, list[Any]]) -> list[dict[str, np.ndarray]]:
        """Return the inputs of a new graph for rows of `predict`, one sequence each."""
        recorded: list[dict[str, np.ndarray]] = []

        def record(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            recorded.append(inputs_by_name(inputs, NAMES.values()))
            return self._run(inputs)

        TokenIdsEngine(self.path, record).predict(columns, batch_tokens=1)
        return recorded

    def _encode(self, texts: dict[str, np.ndarray]) -> tuple[dict[str, Any], HostRows]:
        decoded = {
            name: [
                [text.decode() for text in row] if name in self.list_inputs else row.decode()
                for row in column.tolist()
            ]
            for name, column in texts.items()
        }
        return decoded, self._task.encode(self._tokenizer, decoded)

    def _reduced(
        self, rows: HostRows, batch_tokens: int, on_tokens: Callable[[int, int], None] | None
    ) -> dict[str, np.ndarray]:
        """Run the graph over all sequences, and reduce its outputs by the task's `reduce`."""
        sequences = rows.sequences
        more_inputs = rows.inputs
        if not len(sequences):
            outputs = self._outputs_of_none(more_inputs)
            return self._task.reduce(rows, np.zeros(0, np.int64), outputs)
        lengths = np.diff(sequences.offsets)
        batching = Batching(
            pad_id=self._tokenizer.pad_id,
            batch_tokens=batch_tokens,
            max_seq_length=self._task.max_seq_length,
            max_rows=rows.max_rows,
            has_few_shapes=self.has_few_shapes,
        )
        batches = batching.batches(lengths)
        parts = []
        for chosen in batches:
            inputs = sequences.padded(chosen, **batching.padding(lengths[chosen]))
            for name, values in more_inputs.items():
                shape = (len(inputs["input_mask"]), *values.shape[1:])
                inputs[name] = np.zeros(shape, values.dtype)
                inputs[name][: len(chosen)] = values[chosen]
            outputs = self._outputs(inputs)
            outputs = {name: values[: len(chosen)] for name, values in outputs.items()}
            parts.append(self._task.reduce(rows, chosen, outputs))
            if on_tokens is not None:
                on_tokens(int(lengths[chosen].sum()), inputs["input_mask"].size)
        place = np.argsort(np.concatenate(batches), kind="stable")
        return {name: np.concatenate([part[name] for part in parts])[place] for name in parts[0]}

    def _outputs(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            outputs = self._run({name: values.astype(np.int64) for name, values in inputs.items()})
        except self._faults as error:
            raise _damaged(self.path, error) from None
        if {len(values) for values in outputs.values()} != {len(inputs["input_mask"])}:
            raise _damaged(self.path, ValueError("its outputs have another number of rows"))
        check_finite(outputs, self.path)
        return outputs

    def _outputs_of_none(self, more_inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return outputs [0, …]: those of a sequence of padding, cut."""
        padding = np.zeros((1, LENGTH_MULTIPLE), np.int64)
        inputs = dict.fromkeys(IDS_INPUTS, padding)
        inputs |= {name: np.zeros((1, *values.shape[1:])) for name, values in more_inputs.items()}
        return {name: values[:0] for name, values in self._outputs(inputs).items()}


def model_fault(folder: Path, entry: EngineEntry) -> str | None:
    """Return why a graph of token ids cannot run a model; None if it can."""
    settings = read_task(folder)
    if host_task_from_settings(settings, str(folder)) is None:
        name = declared_task(settings, str(folder)).name
        return f"cannot run models of {name}, whose steps around the graph are TensorFlow's"
    graphs = filter(entry.reads, (OPENVINO_FILE, ONNX_FILE))
    size = (folder / _WEIGHTS).stat().st_size
    if size <= MOST_BYTES or _first_file(folder, graphs) is not None:
        return None
    return (
        f"cannot hold the weights in a graph: they take {size:,} bytes, and it holds "
        f"{MOST_BYTES:,} at most"
    )


@contextmanager
def graph_of(
    folder: Path, names: Sequence[str], *faults: type[Exception]
) -> Iterator[Path | bytes]:
    """Yield the first of the named graphs that exists, or an ONNX graph made from the weights.

    Args:
        folder: the exported model.
        names: file names, in the order of preference.
        *faults: exceptions of the block that mean a damaged graph.

    Raises:
        InputError: the block raises one of `faults`.
        UsageError: see `onnx_model`.
    """
    file = _first_file(folder, names)
    graph = _onnx_graph(folder) if file is None else file
    try:
        yield graph
    except faults as error:
        raise _damaged(file or folder / _WEIGHTS, error) from None


def _damaged(path: Path, error: Exception) -> InputError:
    last_line = str(error).strip().rpartition("\n")[2]
    return InputError(
        f"{path}: damaged or not of bert-pipeline ({last_line}); export the model again"
    )


def checked_outputs(inputs: Collection[str], outputs: Iterable[Collection[str]]) -> list[str]:
    """Return the names of a graph's outputs, as `onnx_model` gives them.

    Args:
        inputs: names of the inputs.
        outputs: all names of each output.

    Raises:
        ValueError: the graph has another origin.
    """
    names = {*inputs} - {POSITIONS}
    if names not in ({*NAMES}, {*NAMES.values()}):
        raise ValueError(f"its inputs are {', '.join(sorted(inputs))}")
    usable_names = [[name for name in OUTPUTS if name in names] for names in outputs]
    if not all(usable_names):
        raise ValueError("its outputs have other names")
    return [names[0] for names in usable_names]


def inputs_by_name(
    inputs: Mapping[str, np.ndarray], names: Collection[str]
) -> dict[str, np.ndarray]:
    """Return the inputs of a batch by a graph's own names for them.

    Args:
        inputs: arrays by the names of `IDS_INPUTS` and POSITIONS.
        names: names of the graph's inputs, checked by `checked_outputs`.
    """
    return {
        name if name in names else NAMES.get(name, name): values for name, values in inputs.items()
    }


def _first_file(folder: Path, names: Iterable[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _onnx_graph(folder: Path) -> bytes:
    # The import takes a while, and is not needed if the folder has a graph.
    from bert_tf.weights.onnx_graph import onnx_model

    file = folder / _WEIGHTS
    config = read_bert_document(folder / CONFIG).config
    architectures = read_json_object(folder / CONFIG).get("architectures")
    architecture, *_ = architectures or ["a model without architectures"]
    try:
        tensors = safetensors.numpy.load_file(file)
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(f"{file}: damaged or not a safetensors file ({error})") from None
    try:
        model = onnx_model(architecture, config, tensors)
    except KeyError as error:
        raise InputError(
            f"{file}: has no tensor {error}, which {CONFIG} asks for; export the model again"
        ) from None
    del tensors  # the model and its bytes are two more copies
    return model.SerializeToString()


def _as_array(values: Any) -> np.ndarray:
    """Convert numbers to float32 or int32, everything else to objects."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(np.float32) if values.dtype.kind == "f" else values
    column = np.empty(len(values), object)
    column[:] = list(values)
    return column
