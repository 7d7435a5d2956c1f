"""A SavedModel that takes raw text, in a HuggingFace folder."""

from __future__ import annotations

from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.formats.huggingface import HuggingFaceFormat
from bert_tf.export.loading import TrainedModel
from bert_tf.export.saved_model import write_saved_model
from bert_tf.tasks.task_card import TaskCard


class SavedModelFormat(HuggingFaceFormat):
    """A `ModelFormat`: what HuggingFace's libraries load, and the graph beside it."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """See `ModelFormat.write`."""
        notes = super().write(trained, output, console)
        console.progress("tracing the model")
        write_saved_model(trained, output)
        return notes

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        """See `ModelFormat.loading`."""
        return [
            "Text in, predictions out, with tensorflow and tensorflow_text alone:",
            "```python",
            "import tensorflow as tf",
            "import tensorflow_text",
            'model = tf.saved_model.load("THIS_FOLDER")',
            f'outputs = model.signatures["serving_default"]({card.signature_call})',
            f'print(outputs["{card.signature_output}"].numpy())',
            "```",
            *super().loading(card, config, lowercase=lowercase),
        ]


FORMAT = SavedModelFormat()
