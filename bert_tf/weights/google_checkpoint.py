"""Reads checkpoints of google-research/bert (TensorFlow 1) and TF Model Garden (TensorFlow 2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.config.bert import read_bert_config
from bert_tf.config.errors import InputError, UsageError
from bert_tf.weights.model_directory import ModelDirectory
from bert_tf.weights.object_checkpoint import (
    OBJECT_GRAPH,
    huggingface_array,
    object_tensor_name,
)
from bert_tf.weights.vocabulary_files import read_folder_vocab, read_lowercase

CONFIG = "bert_config.json"
_HEADS = {
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
    "cls/squad/output_weights": "qa_outputs.weight",
    "cls/squad/output_bias": "qa_outputs.bias",
    "output_weights": "classifier.weight",
    "output_bias": "classifier.bias",
}
_ENDINGS = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}
_OPTIMIZER = re.compile(r"(adam_[mv]|lamb_[mv]|global_step)$")


def read_google_checkpoint(folder: Path) -> ModelDirectory:
    """The model of a folder with `bert_config.json`, `vocab.txt` and one checkpoint.

    Raises:
        UsageError: a file is missing, there are several checkpoints, or vocabulary and config
            disagree.
        InputError: the checkpoint is damaged.
    """
    config = read_bert_config(folder / CONFIG)
    vocab = read_folder_vocab(folder)
    return ModelDirectory(
        path=folder,
        config=config,
        vocab=vocab,
        lowercase=read_lowercase(folder, vocab),
        task=None,
        tensors=CheckpointTensors(_checkpoint_prefix(folder), config.num_hidden_layers),
    )


def huggingface_name(name: str) -> str | None:
    """HuggingFace's name of a TensorFlow 1 variable; None for an optimizer's slot or counter."""
    if _OPTIMIZER.search(name):
        return None
    if name in _HEADS:
        return _HEADS[name]
    *scope, last = re.sub(r"/layer_(\d+)/", r"/layer/\1/", name).split("/")
    if scope[-1:] == ["embeddings"]:
        return ".".join([*scope, last, "weight"])
    return ".".join([*scope, _ENDINGS.get(last, last)])


class CheckpointTensors(Mapping[str, np.ndarray]):
    """A checkpoint's weights by HuggingFace name, float32, read when asked for.

    Args:
        prefix: path of the checkpoint without `.index`.
        num_hidden_layers: blocks of the encoder.

    Raises:
        InputError: the checkpoint cannot be opened.
    """

    def __init__(self, prefix: str, num_hidden_layers: int):
        try:
            self._reader = tf.train.load_checkpoint(prefix)
        except (tf.errors.OpError, ValueError) as error:
            raise InputError(f"{prefix}: damaged checkpoint ({error})") from None
        keys = self._reader.get_variable_to_shape_map()
        self._has_objects = OBJECT_GRAPH in keys
        self._names = {
            renamed: key
            for key in keys
            for renamed in [
                object_tensor_name(key, num_hidden_layers)
                if self._has_objects
                else huggingface_name(key)
            ]
            if renamed is not None
        }

    def __getitem__(self, name: str) -> np.ndarray:
        original = self._names[name]
        value = self._reader.get_tensor(original)
        if self._has_objects:
            return huggingface_array(name, value)
        value = value.astype(np.float32)
        return value.T if original.endswith("/kernel") else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _checkpoint_prefix(folder: Path) -> str:
    found = sorted(str(path.with_suffix("")) for path in folder.glob("*.index"))
    latest = tf.train.latest_checkpoint(str(folder))
    if latest in found:
        return str(latest)
    if len(found) != 1:
        raise UsageError(
            f"{folder}: expected one checkpoint (bert_model.ckpt.index with its .data file), "
            f"found {len(found)}"
        )
    return found[0]
