"""Folders for other libraries: transformers, sentence-transformers, KerasHub and Google's BERT."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.config.embedding_recipe import RAW_CLS, EmbeddingRecipe
from bert_tf.export.loading import TrainedModel, model_contents
from bert_tf.tasks.base.declaration import TaskCard
from bert_tf.weights.model_directory import write_model_directory


@dataclasses.dataclass(frozen=True, kw_only=True)
class HuggingFaceFormat:
    """A `ModelFormat` without loss, since model directories are such folders."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        write_folder(trained, output)
        return []

    def loading(self, card: TaskCard, *, lowercase: bool) -> list[str]:
        auto_class = card.transformers_class
        return _in_python(
            "transformers",
            f"from transformers import AutoTokenizer, {auto_class}",
            'tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")',
            f'model = {auto_class}.from_pretrained("THIS_FOLDER")',
        )


def _in_python(library: str, *lines: str) -> list[str]:
    return [f"With {library}:", "```python", *lines, "```"]


def write_folder(trained: TrainedModel, output: Path, *, with_weights: bool = True) -> None:
    """Write a model directory, with or without its weights."""
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

    def loading(self, card: TaskCard, *, lowercase: bool) -> list[str]:
        return _in_python(
            "sentence-transformers",
            "from sentence_transformers import SentenceTransformer",
            'model = SentenceTransformer("THIS_FOLDER")',
            'vectors = model.encode(["a text", "another text"])',
        )


class GoogleFormat:
    """A `ModelFormat` for the scripts of google-research/bert."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        from bert_tf.weights.google_checkpoint import write_google_checkpoint

        return write_google_checkpoint(output, **model_contents(trained))

    def loading(self, card: TaskCard, *, lowercase: bool) -> list[str]:
        if card.google_script is None:
            return [
                "With google-research/bert (TensorFlow 1): none of its scripts has this head;",
                "its `modeling.BertModel` loads the encoder from `bert_model.ckpt`.",
            ]
        flags = ""
        if card.script_reads_text:
            flags = f"--vocab_file=THIS_FOLDER/vocab.txt --do_lower_case={lowercase} "
        return [
            "With google-research/bert (TensorFlow 1):",
            "```",
            f"python {card.google_script} --bert_config_file=THIS_FOLDER/bert_config.json \\",
            f"  --init_checkpoint=THIS_FOLDER/bert_model.ckpt {flags}…",
            "```",
        ]


class KerasHubFormat:
    """A `ModelFormat`; heads other than a classifier's are left out."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        from bert_tf.weights.keras_hub_preset import write_keras_hub_preset  # loads KerasHub

        longest = trained.directory.config.max_position_embeddings
        if trained.task is not None and trained.task.card().is_keras_hub_task:
            longest = trained.task.max_seq_length
        return write_keras_hub_preset(output, **model_contents(trained), max_seq_length=longest)

    def loading(self, card: TaskCard, *, lowercase: bool) -> list[str]:
        return _in_python(
            "KerasHub",
            "import keras_hub",
            'tokenizer = keras_hub.models.BertTokenizer.from_preset("THIS_FOLDER")',
            f'model = keras_hub.models.{card.keras_hub_class}.from_preset("THIS_FOLDER")',
        )
