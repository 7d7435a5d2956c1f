"""The same graph in OpenVINO's own format, in a HuggingFace folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.formats.huggingface import HuggingFaceFormat
from bert_tf.export.formats.int8_graph import quantized
from bert_tf.export.formats.onnx_graph import graph_notes, tokens_in, trained_graph
from bert_tf.export.loading import TrainedModel
from bert_tf.serving.signatures import OPENVINO_FILE, OPENVINO_INT8_FILE
from bert_tf.tasks.base.task_card import TaskCard


class OpenVinoFormat(HuggingFaceFormat):
    """A `ModelFormat`: what HuggingFace's libraries load, and the graph beside it."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """See `ModelFormat.write`."""
        graph = trained_graph(trained).SerializeToString()
        notes = super().write(trained, output, console)
        _save(openvino.Core().read_model(graph, b""), output / OPENVINO_FILE)
        return [*notes, *graph_notes(trained)]

    def write_int8(self, folder: Path, batches: Sequence[dict[str, np.ndarray]]) -> None:
        """See `QuantizableFormat.write_int8`."""
        model = openvino.Core().read_model(folder / OPENVINO_FILE)
        _save(quantized(model, batches), folder / OPENVINO_INT8_FILE)

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        """See `ModelFormat.loading`."""
        return [
            "Token ids in, scores out, with openvino and a tokenizer of HuggingFace's:",
            "```python",
            "import openvino",
            "from transformers import AutoTokenizer",
            f'model = openvino.compile_model("THIS_FOLDER/{OPENVINO_FILE}", "CPU")',
            *tokens_in("model(inputs)"),
            "```",
            *super().loading(card, config, lowercase=lowercase),
        ]


def _save(model: openvino.Model, file: Path) -> None:
    """Names nodes by their place: OpenVINO counts all that a process has made, which would make
    equal models different files."""
    for place, node in enumerate(model.get_ordered_ops()):
        if node.get_type_name() not in ("Parameter", "Result"):
            node.set_friendly_name(f"{node.get_type_name()}_{place}")
    openvino.save_model(model, file, compress_to_fp16=False)


FORMAT = OpenVinoFormat()
