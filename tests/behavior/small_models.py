"""Small untrained models, as pretraining and `finetune` leave them."""

from pathlib import Path
from typing import Any

import keras

from bert_tf.config.bert import BertConfig
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import BertClassifier
from bert_tf.weights.model_directory import write_model_directory


def write_classifier(
    path: Path, *, vocab: list[str], task: dict[str, Any], seed: int, **config: Any
) -> Path:
    """Writes a classifier with random weights.

    Args:
        path: model directory to write.
        vocab: entries, lower-cased.
        task: content of `task.json`, with the labels.
        seed: of the weights.
        config: keys of `BertConfig` that are to be others than those of a tiny model.
    """
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 16,
        **config,
    }
    keras.utils.set_random_seed(seed)
    model = BertClassifier(
        BertConfig(vocab_size=len(vocab), **sizes), len(task["labels"]), dtype="float32"
    )
    model.build_weights()
    write_model_directory(path, model, vocab=vocab, lowercase=True, task=task)
    return path


def write_encoder(path: Path, *, vocab: list[str], seed: int, **config: Any) -> Path:
    """Writes an encoder with random weights, to start a fine-tuning from.

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
        "max_position_embeddings": 16,
        **config,
    }
    keras.utils.set_random_seed(seed)
    encoder = BertEncoder(BertConfig(vocab_size=len(vocab), **sizes))
    encoder.build_weights()
    write_model_directory(path, encoder, vocab=vocab, lowercase=True, task=None)
    return path
