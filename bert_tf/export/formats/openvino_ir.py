"""The same graph in OpenVINO's own format, in a HuggingFace folder."""

from __future__ import annotations

from pathlib import Path

import openvino

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.formats.huggingface import HuggingFaceFormat
from bert_tf.export.formats.onnx_graph import graph_notes, tokens_in, trained_graph
from bert_tf.export.loading import TrainedModel
from bert_tf.serving.signatures import OPENVINO_FILE
from bert_tf.tasks.base.task_card import TaskCard


class OpenVinoFormat(HuggingFaceFormat):
    """A `ModelFormat`: what HuggingFace's libraries load, and the graph beside it."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """See `ModelFormat.write`."""
        graph = trained_graph(trained).SerializeToString()
        notes = super().write(trained, output, console)
        model = openvino.Core().read_model(graph, b"")
        _name_by_place(model)
        openvino.save_model(model, output / OPENVINO_FILE, compress_to_fp16=False)
        return [*notes, *graph_notes(trained)]

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


def _name_by_place(model: openvino.Model) -> None:
    """Names nodes by their place: OpenVINO counts all that a process has made, which would make
    equal models different files."""
    for place, node in enumerate(model.get_ordered_ops()):
        if node.get_type_name() not in ("Parameter", "Result"):
            node.set_friendly_name(f"{node.get_type_name()}_{place}")


FORMAT = OpenVinoFormat()
