"""Reads BERT presets of KerasHub (and KerasNLP, its former name)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras_hub
import numpy as np
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.config.errors import InputError, UsageError
from bert_tf.data.wordpiece import read_vocab
from bert_tf.weights.model_directory import CONFIG, ModelDirectory

_WEIGHTS = "model.weights.h5"
_VOCABULARY = Path("assets") / "tokenizer" / "vocabulary.txt"


def is_keras_hub_preset(folder: Path) -> bool:
    """Whether the folder's `config.json` describes an object of KerasHub."""
    try:
        document = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and "registered_name" in document


def read_keras_hub_preset(folder: Path) -> ModelDirectory:
    """The encoder, vocabulary and casing of a preset, under HuggingFace's names.

    KerasHub's BERT computes the tanh approximation of GELU, LayerNorm epsilon 1e-12, and has no
    other choice. Heads of task presets are not read.

    Raises:
        UsageError: a preset of another model, or without weights or vocabulary.
        InputError: damaged weights.
    """
    registered = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["registered_name"]
    if str(registered).split(">")[-1] != "BertBackbone":
        raise UsageError(f"{folder}: a preset of {registered}; only BertBackbone can be read")
    if not (folder / _WEIGHTS).is_file():
        raise UsageError(f"{folder}: a KerasHub preset without {_WEIGHTS}")
    vocab = read_vocab(folder / _VOCABULARY)
    try:
        backbone = keras_hub.models.BertBackbone.from_preset(str(folder))
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{folder}: KerasHub cannot read it ({reason})") from None
    config = BertConfig(
        vocab_size=backbone.vocabulary_size,
        hidden_size=backbone.hidden_dim,
        num_hidden_layers=backbone.num_layers,
        num_attention_heads=backbone.num_heads,
        intermediate_size=backbone.intermediate_dim,
        hidden_act="gelu_new",
        hidden_dropout_prob=backbone.dropout,
        attention_probs_dropout_prob=backbone.dropout,
        max_position_embeddings=backbone.max_sequence_length,
        type_vocab_size=backbone.num_segments,
    )
    return ModelDirectory(
        path=folder,
        config=config,
        vocab=vocab,
        lowercase=_read_lowercase(folder),
        task=None,
        tensors=dict(_backbone_tensors(backbone)),
    )


def _read_lowercase(folder: Path) -> bool:
    path = folder / "tokenizer.json"
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["config"]["lowercase"])
    except FileNotFoundError:
        raise UsageError(f"{folder}: a KerasHub preset without tokenizer.json") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged tokenizer config ({error!r})") from None


def _backbone_tensors(backbone: Any) -> Iterator[tuple[str, np.ndarray]]:
    layer = backbone.get_layer
    for name, variable in (
        ("word_embeddings", layer("token_embedding").embeddings),
        ("position_embeddings", layer("position_embedding").position_embeddings),
        ("token_type_embeddings", layer("segment_embedding").embeddings),
    ):
        yield f"bert.embeddings.{name}.weight", _value(variable)
    yield from _layer_norm("bert.embeddings.LayerNorm", layer("embeddings_layer_norm"))
    for index in range(backbone.num_layers):
        block = layer(f"transformer_layer_{index}")
        attention = block._self_attention_layer
        prefix = f"bert.encoder.layer.{index}"
        for name, dense in (
            ("attention.self.query", attention.query_dense),
            ("attention.self.key", attention.key_dense),
            ("attention.self.value", attention.value_dense),
            ("attention.output.dense", attention.output_dense),
            ("intermediate.dense", block._feedforward_intermediate_dense),
            ("output.dense", block._feedforward_output_dense),
        ):
            yield from _dense(f"{prefix}.{name}", dense)
        for name, norm in (
            ("attention.output.LayerNorm", block._self_attention_layer_norm),
            ("output.LayerNorm", block._feedforward_layer_norm),
        ):
            yield from _layer_norm(f"{prefix}.{name}", norm)
    yield from _dense("bert.pooler.dense", layer("pooled_dense"))


def _dense(name: str, layer: Any) -> Iterator[tuple[str, np.ndarray]]:
    # Attention kernels are [hidden, heads, head] or [heads, head, hidden], biases [heads, head].
    bias = _value(layer.bias).reshape(-1)
    yield f"{name}.weight", _value(layer.kernel).reshape(-1, len(bias)).T
    yield f"{name}.bias", bias


def _layer_norm(name: str, layer: Any) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{name}.weight", _value(layer.gamma)
    yield f"{name}.bias", _value(layer.beta)


def _value(variable: Any) -> np.ndarray:
    return tf.convert_to_tensor(variable.value).numpy().astype(np.float32)
