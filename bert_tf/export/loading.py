"""A trained model in memory, and the formats it can be written in."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.config.sections import ExportConfig
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import BertMaskedLM, BertPretrainingModel
from bert_tf.tasks.base.declaration import TaskCard
from bert_tf.tasks.base.served_task import ServedTask
from bert_tf.tasks.registry import pretrained_task_class, served_task_from_settings
from bert_tf.weights.model_directory import ModelDirectory, load_all_weights, model_tensors
from bert_tf.weights.tensor_names import ENCODER_PREFIX, model_bindings

_POOLER = "bert.pooler.dense.weight"
_MASKED_LM = ("cls.predictions.transform.dense.weight", "cls.predictions.bias")
_NEXT_SENTENCE = "cls.seq_relationship.weight"
_TIED = ("cls.predictions.decoder.",)  # copies of the embeddings and of the head's bias


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A model with its weights.

    Attributes:
        directory: the model directory.
        task: its task; None for a pretrained model that gives vectors.
        model: the Keras model, float32.
        tokenizer: its tokenizer.
        pooling, normalize: for formats that state them; None for those of the model's folder.
    """

    directory: ModelDirectory
    task: ServedTask | None
    model: Any
    tokenizer: WordPieceTokenizer
    pooling: str | None = None
    normalize: bool | None = None

    @property
    def recipe(self) -> EmbeddingRecipe | None:
        """Recipe of embeddings of a model without a task; None if there is none."""
        recipe = self.directory.recipe if self.task is None else None
        if recipe is None:
            return None
        return recipe.changed(pooling=self.pooling, normalize=self.normalize)

    @property
    def encoder(self) -> Any:
        """The encoder, which may be the model itself."""
        return getattr(self.model, "encoder", self.model)

    @property
    def has_head(self) -> bool:
        """Whether the model has weights besides those of the encoder."""
        return len(self.model.weights) > len(self.encoder.weights)


def directory_for_task(directory: ModelDirectory, config: ExportConfig) -> ModelDirectory:
    """Return a pretrained model as one for `config.task`.

    Raises:
        UsageError: that is impossible.
    """
    assert config.task is not None
    before = (directory.task or {}).get("task", config.task)
    if before != config.task:
        raise UsageError(
            f"--task {config.task}: {directory.path} was fine-tuned for {before}; give the "
            "pretrained model it started from, or leave --task out"
        )
    task = pretrained_task_class(config.task).of_pretrained(directory, config)
    return dataclasses.replace(directory, task=task.settings())


def load_trained_model(directory: ModelDirectory) -> TrainedModel:
    """Build the model of a directory with its weights.

    Factors that the task applies to the head's outputs are moved into the head's weights if that is
    possible (see `ServedTask.folded_into`), so that all libraries predict alike.

    Raises:
        UsageError: the task or its head is missing.
    """
    task = None
    if directory.task is None:
        model = _pretrained_model(directory)
    else:
        task = served_task_from_settings(directory.task, str(directory.path))
        model = task.build_model(directory.config, policy="float32")
    load_all_weights(model, directory)
    folded = None if task is None else task.folded_into(model)
    if folded is not None and folded is not task:
        task = folded
        directory = dataclasses.replace(directory, task=folded.settings())
    return TrainedModel(
        directory=directory,
        task=task,
        model=model,
        tokenizer=WordPieceTokenizer(directory.vocab, lowercase=directory.lowercase),
    )


def unread_heads(trained: TrainedModel) -> list[str]:
    """Return the names of tensors that neither the encoder nor the head of the model has."""
    read = {name for binding in model_bindings(trained.model) for name in binding.names}
    return sorted(
        name
        for name in trained.directory.tensors
        if name not in read and not name.startswith((ENCODER_PREFIX, *_TIED))
    )


def _pretrained_model(directory: ModelDirectory) -> Any:
    """Return the model, with heads and pooler if there are weights for them."""
    tensors = directory.tensors
    config = directory.config
    has_pooler = _POOLER in tensors
    if all(name in tensors for name in _MASKED_LM):
        if has_pooler and _NEXT_SENTENCE in tensors:
            return BertPretrainingModel(config, dtype="float32")
        return BertMaskedLM(config, dtype="float32")
    return BertEncoder(config, has_pooler=has_pooler, dtype="float32")


def model_contents(trained: TrainedModel) -> dict[str, Any]:
    """Return config, vocabulary, casing and tensors: keyword arguments of `weights`' writers."""
    directory = trained.directory
    return {
        "config": directory.config,
        "vocab": directory.vocab,
        "lowercase": directory.lowercase,
        "tensors": model_tensors(trained.model),
    }


class ModelFormat(Protocol):
    """A way to write a trained model for a library, and the library's way to load it."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """Write a model to an existing folder; other files in it stay.

        Returns:
            Differences between the folder, or the results of its library, and the model, a sentence
            each.

        Raises:
            UsageError: the library has no such model.
            BertPipelineError: the written model computes something else.
        """

    def loading(self, card: TaskCard, *, lowercase: bool) -> list[str]:
        """Return Markdown lines for the model card that load the folder with the library."""


class QuantizableFormat(ModelFormat, Protocol):
    """A format with a graph of token ids, and optionally one of 8-bit integers beside it."""

    def write_int8(self, folder: Path, batches: Sequence[dict[str, np.ndarray]]) -> None:
        """Write the int8 graph beside the float32 graph; `batches` are for calibration."""
