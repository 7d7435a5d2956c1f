"""Folders that HuggingFace's transformers and sentence-transformers load."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.embedding_recipe import RAW_CLS, EmbeddingRecipe
from bert_tf.export.loading import TrainedModel
from bert_tf.tasks.base.declaration import TaskCard
from bert_tf.weights.model_directory import write_model_directory


@dataclasses.dataclass(frozen=True, kw_only=True)
class HuggingFaceFormat:
    """A `ModelFormat` without loss, since model directories are such folders."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        write_folder(trained, output)
        return []

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
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


class SentenceTransformersFormat:
    """A `ModelFormat` of the encoder; heads are left out."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        directory = trained.directory
        longest = directory.config.max_position_embeddings
        recipe = (directory.recipe or EmbeddingRecipe(max_seq_length=longest)).changed(
            pooling=trained.pooling, normalize=trained.normalize
        )
        write_model_directory(
            output,
            trained.encoder,
            vocab=directory.vocab,
            lowercase=directory.lowercase,
            task=None,
            recipe=recipe,
        )
        notes = []
        if trained.has_head:
            notes.append("The model's head is left out; vectors are made of the encoder's states.")
        if recipe.is_raw_cls:
            notes.append(RAW_CLS)
        return notes

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        return [
            "With sentence-transformers:",
            "```python",
            "from sentence_transformers import SentenceTransformer",
            'model = SentenceTransformer("THIS_FOLDER")',
            'vectors = model.encode(["a text", "another text"])',
            "```",
        ]
