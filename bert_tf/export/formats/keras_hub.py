"""The preset that KerasHub's `from_preset` loads."""

from __future__ import annotations

from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.formats.contents import model_contents
from bert_tf.export.loading import TrainedModel
from bert_tf.tasks.base.task_card import TaskCard
from bert_tf.weights.keras_hub_preset import write_keras_hub_preset


class KerasHubFormat:
    """A `ModelFormat`; heads other than a classifier's are left out."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """See `ModelFormat.write`."""
        longest = trained.directory.config.max_position_embeddings
        if trained.task is not None and trained.task.card().is_keras_hub_task:
            longest = trained.task.max_seq_length
        return write_keras_hub_preset(output, **model_contents(trained), max_seq_length=longest)

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        """See `ModelFormat.loading`."""
        return [
            "With KerasHub:",
            "```python",
            "import keras_hub",
            'tokenizer = keras_hub.models.BertTokenizer.from_preset("THIS_FOLDER")',
            f'model = keras_hub.models.{card.keras_hub_class}.from_preset("THIS_FOLDER")',
            "```",
        ]


FORMAT = KerasHubFormat()
