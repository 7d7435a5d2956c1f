"""The folder that the `AutoModel…` classes of HuggingFace's transformers load."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.loading import TrainedModel
from bert_tf.tasks.base.task_card import TaskCard
from bert_tf.weights.model_directory import write_model_directory


@dataclasses.dataclass(frozen=True, kw_only=True)
class HuggingFaceFormat:
    """A `ModelFormat`; nothing is lost, since model directories are such folders."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """See `ModelFormat.write`."""
        write_folder(trained, output)
        return []

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        """See `ModelFormat.loading`."""
        auto_class = card.transformers_class
        return [
            "With transformers:",
            "```python",
            f"from transformers import AutoTokenizer, {auto_class}",
            'tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")',
            f'model = {auto_class}.from_pretrained("THIS_FOLDER")',
            "```",
        ]


def write_folder(trained: TrainedModel, output: Path, *, with_weights: bool = True) -> None:
    """Writes a model's directory; see `write_model_directory`."""
    write_model_directory(
        output,
        trained.model,
        vocab=trained.directory.vocab,
        lowercase=trained.directory.lowercase,
        task=trained.directory.task,
        recipe=trained.recipe,
        with_weights=with_weights,
    )


FORMAT = HuggingFaceFormat()
