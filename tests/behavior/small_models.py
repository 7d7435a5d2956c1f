"""Small untrained models, as pretraining and `finetune` leave them."""

from pathlib import Path
from typing import Any

import keras

from bert_tf.config.bert import BertConfig
from bert_tf.models.encoder import BertEncoder
from bert_tf.tasks.base.served_task import ServedTask
from bert_tf.tasks.registry import served_task_from_settings
from bert_tf.weights.model_directory import write_model_directory


def write_model(
    path: Path,
    task: ServedTask | dict[str, Any] | None,
    *,
    vocab: list[str],
    seed: int,
    **config: Any,
) -> Path:
    """Write a model for a task, or for its settings, an encoder for None, with random weights.

    Args:
        path: model directory to write.
        vocab: entries, lower-cased.
        seed: of the weights.
        config: keys of `BertConfig` that are to be others than those of a tiny model.
    """
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "initializer_range": 0.5,
        **config,
    }
    bert = BertConfig(vocab_size=len(vocab), **sizes)
    settings = task.settings() if isinstance(task, ServedTask) else task
    if isinstance(task, dict):
        task = served_task_from_settings(task, "test")
    keras.utils.set_random_seed(seed)
    if task is None:
        model = BertEncoder(bert, dtype="float32")
    else:
        model = task.build_model(bert, policy="float32")
    model.build_weights()
    write_model_directory(path, model, vocab=vocab, lowercase=True, task=settings)
    return path


def write_classifier(
    path: Path, *, vocab: list[str], task: dict[str, Any], seed: int, **config: Any
) -> Path:
    """Write a classifier with random weights.

    Args:
        path: model directory to write.
        vocab: entries, lower-cased.
        task: content of `task.json`, with the labels.
        seed: of the weights.
        config: keys of `BertConfig` that are to be others than those of a tiny model.
    """
    sizes = {
        "hidden_size": 8,
        "intermediate_size": 16,
        "max_position_embeddings": 16,
        "initializer_range": 0.02,
        **config,
    }
    return write_model(path, task, vocab=vocab, seed=seed, **sizes)


def write_encoder(path: Path, *, vocab: list[str], seed: int, **config: Any) -> Path:
    """Write an encoder with random weights, to start a fine-tuning from.

    Args:
        path: model directory to write.
        vocab: entries, lower-cased.
        seed: of the weights.
        config: keys of `BertConfig` that are to be others than those of a tiny model.
    """
    sizes = {"max_position_embeddings": 16, "initializer_range": 0.02, **config}
    return write_model(path, None, vocab=vocab, seed=seed, **sizes)
