"""Graphs from token ids to scores, for ONNX runtimes and OpenVINO, in a HuggingFace folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx

from bert_tf.base.console import Console
from bert_tf.base.files import replacing_file
from bert_tf.export.int8 import quantized_openvino, write_quantized_onnx
from bert_tf.export.libraries import HuggingFaceFormat
from bert_tf.export.loading import TrainedModel
from bert_tf.serving.signatures import ONNX_FILE, ONNX_INT8_FILE, OPENVINO_FILE, OPENVINO_INT8_FILE
from bert_tf.tasks.base.declaration import TaskCard
from bert_tf.weights.model_directory import model_tensors
from bert_tf.weights.onnx_graph import onnx_model


class GraphFormat(HuggingFaceFormat):
    """A `QuantizableFormat`: files for HuggingFace's libraries, with a graph beside them.

    Attributes:
        library: library that runs the graph.
        runner: Python expression that loads the graph.
        call: Python expression that runs this `model` on `inputs`.
    """

    library: ClassVar[str]
    runner: ClassVar[str]
    call: ClassVar[str]

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        graph = trained_graph(trained)
        notes = super().write(trained, output, console)
        self.write_graph(graph, output)
        return [*notes, *graph_notes(trained)]

    def write_graph(self, graph: onnx.ModelProto, folder: Path) -> None:
        """Write the graph to a folder in the format of the library."""
        raise NotImplementedError

    def loading(self, card: TaskCard, *, lowercase: bool) -> list[str]:
        return [
            f"Token ids in, scores out, with {self.library} and a tokenizer of HuggingFace's:",
            "```python",
            f"import {self.library}",
            "from transformers import AutoTokenizer",
            f"model = {self.runner}",
            'tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")',
            'inputs = dict(tokenizer(["some text"], return_tensors="np"))',
            f"print({self.call})",
            "```",
            *super().loading(card, lowercase=lowercase),
        ]


class OnnxFormat(GraphFormat):
    """A `QuantizableFormat` for onnxruntime."""

    library = "onnxruntime"
    runner = f'onnxruntime.InferenceSession("THIS_FOLDER/{ONNX_FILE}")'
    call = "model.run(None, inputs)"

    def write_graph(self, graph: onnx.ModelProto, folder: Path) -> None:
        with replacing_file(folder / ONNX_FILE) as aside:
            aside.write_bytes(graph.SerializeToString(deterministic=True))

    def write_int8(self, folder: Path, batches: Sequence[dict[str, np.ndarray]]) -> None:
        with replacing_file(folder / ONNX_INT8_FILE) as aside:
            write_quantized_onnx(folder / ONNX_FILE, aside, batches)


class OpenVinoFormat(GraphFormat):
    """A `QuantizableFormat` for OpenVINO."""

    library = "openvino"
    runner = f'openvino.compile_model("THIS_FOLDER/{OPENVINO_FILE}", "CPU")'
    call = "model(inputs)"

    def write_graph(self, graph: onnx.ModelProto, folder: Path) -> None:
        import openvino

        model = openvino.Core().read_model(graph.SerializeToString(), b"")
        _save_openvino(model, folder / OPENVINO_FILE)

    def write_int8(self, folder: Path, batches: Sequence[dict[str, np.ndarray]]) -> None:
        import openvino

        model = openvino.Core().read_model(folder / OPENVINO_FILE)
        _save_openvino(quantized_openvino(model, batches), folder / OPENVINO_INT8_FILE)


def _save_openvino(model: Any, file: Path) -> None:
    """Write a model, with nodes named by their position.

    OpenVINO names them by a counter of the process, with which equal models would differ.
    """
    import openvino

    for place, node in enumerate(model.get_ordered_ops()):
        if node.get_type_name() not in ("Parameter", "Result"):
            node.set_friendly_name(f"{node.get_type_name()}_{place}")
    openvino.save_model(model, file, compress_to_fp16=False)


def trained_graph(trained: TrainedModel) -> onnx.ModelProto:
    """Build the graph of a model in memory.

    Raises:
        UsageError: see `onnx_model`.
    """
    model = trained.model
    # Without a task the graph returns vectors, even if the model has pretraining heads.
    architecture = "BertModel" if trained.task is None else model.huggingface_class
    return onnx_model(
        architecture, trained.directory.config, model_tensors(model), recipe=trained.recipe
    )


def graph_notes(trained: TrainedModel) -> list[str]:
    """Return differences between the graph and the model, a sentence each."""
    notes = []
    if trained.task is None and trained.model is not trained.encoder:
        notes.append(
            "The graph ends at the encoder's states; the heads of pretraining are in "
            "`model.safetensors`."
        )
    recipe = trained.recipe
    if recipe is not None and recipe.changes_texts:
        notes.append(
            "The graph takes ids: apply the folder's prompts and lower-casing "
            "(`sentence_bert_config.json`) before tokenizing."
        )
    return notes
