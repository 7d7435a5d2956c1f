"""A run's model in memory, complete, ready to be written for others."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.task import Task
from bert_tf.weights.model_directory import ModelDirectory, load_all_weights

_PRETRAINING_TENSOR = "cls.predictions.bias"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A model with its weights.

    Attributes:
        directory: where it was read.
        task: what it was fine-tuned for; None for a pretrained model.
        model: the Keras model, float32.
        tokenizer: the model's.
        pooling, normalize: how vectors of texts are to be made, for formats that state it; None
            where the model's folder decides (see `EmbeddingRecipe`).
    """

    directory: ModelDirectory
    task: Task | None
    model: Any
    tokenizer: WordPieceTokenizer
    pooling: str | None = None
    normalize: bool | None = None

    @property
    def encoder(self) -> Any:
        """The Keras encoder."""
        return getattr(self.model, "encoder", self.model)


def load_trained_model(directory: ModelDirectory) -> TrainedModel:
    """Builds the model of a directory and loads its weights.

    Raises:
        UsageError: its task is not known, or weights of its head are missing.
    """
    task = None
    if directory.task is not None:
        task = task_from_settings(directory.task, str(directory.path))
    if task is not None:
        model = task.build_model(directory.config, policy="float32")
    elif _PRETRAINING_TENSOR in directory.tensors:
        model = BertPretrainingModel(directory.config, dtype="float32")
    else:
        model = BertEncoder(directory.config, dtype="float32")
    model.build_weights()
    load_all_weights(model, directory)
    return TrainedModel(
        directory=directory,
        task=task,
        model=model,
        tokenizer=WordPieceTokenizer(directory.vocab, lowercase=directory.lowercase),
    )
