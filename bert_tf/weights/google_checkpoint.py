"""Checkpoints of google-research/bert (TensorFlow 1), in and out; those of TensorFlow 2, in.

Names are translated by rule, not by a table: `bert/encoder/layer_3/output/dense/kernel` is
HuggingFace's `bert.encoder.layer.3.output.dense.weight`. TensorFlow stores kernels as [input,
output], PyTorch as [output, input].
"""

from __future__ import annotations

import contextlib
import glob
import json
import math
import re
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import check_lfs_pointer, plain_path, write_text_atomically
from bert_tf.config.bert import BertConfig
from bert_tf.config.bert_file import GOOGLE_CONFIG, read_bert_document
from bert_tf.data.text.casing import Lowercase
from bert_tf.data.text.vocabulary_files import read_folder_vocabulary, write_vocabulary_files
from bert_tf.weights.model_directory import ModelDirectory, check_parameter_count
from bert_tf.weights.object_checkpoint import (
    OBJECT_GRAPH,
    POOLER,
    departures,
    huggingface_array,
    tensor_keys,
)

CHECKPOINT = "bert_model.ckpt"
# Variables of heads, which have other names than HuggingFace's tensors.
_HEADS = {
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
    "cls/squad/output_weights": "qa_outputs.weight",
    "cls/squad/output_bias": "qa_outputs.bias",
    "output_weights": "classifier.weight",
    "output_bias": "classifier.bias",
}
_HEAD_VARIABLES = {tensor: variable for variable, tensor in _HEADS.items()}
_ENDINGS = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}
_OPTIMIZER = re.compile(r"(adam_[mv]|lamb_[mv]|global_step)$")

# Exceptions that TensorFlow converts its C++ status codes to.
_DAMAGED = (tf.errors.OpError, ValueError, IndexError, NotImplementedError)


def read_google_checkpoint(folder: Path) -> ModelDirectory:
    """Open a folder with `bert_config.json`, `vocab.txt` and one checkpoint.

    Raises:
        UsageError: a file is missing, there are several checkpoints, or vocabulary, config and
            weights do not belong together.
        InputError: the checkpoint is damaged.
    """
    document = read_bert_document(folder / GOOGLE_CONFIG)
    config = document.config
    vocabulary = read_folder_vocabulary(folder, vocab_size=config.vocab_size)
    tensors = CheckpointTensors(_checkpoint_prefix(folder), config.num_hidden_layers)
    check_parameter_count(folder, config, tensors.count_numbers())
    return ModelDirectory(
        path=folder,
        config=config,
        vocab=vocabulary.vocab,
        lowercase=vocabulary.lowercase,
        task=None,
        tensors=tensors,
        notes=document.notes + vocabulary.notes,
    )


def huggingface_name(name: str) -> str | None:
    """Return HuggingFace's name of a TensorFlow 1 variable; None for the optimizer's."""
    if _OPTIMIZER.search(name):
        return None
    if name in _HEADS:
        return _HEADS[name]
    *scope, last = re.sub(r"/layer_(\d+)/", r"/layer/\1/", name).split("/")
    if scope[-1:] == ["embeddings"]:
        return ".".join([*scope, last, "weight"])
    return ".".join([*scope, _ENDINGS.get(last, last)])


def google_name(name: str) -> str:
    """Return the TensorFlow 1 variable of HuggingFace's tensor; inverts `huggingface_name`."""
    if name in _HEAD_VARIABLES:
        return _HEAD_VARIABLES[name]
    *scope, last = name.split(".")
    path = re.sub(r"/layer/(\d+)/", r"/layer_\1/", "/".join(scope))
    if path.endswith("_embeddings"):
        return path
    if path.endswith("LayerNorm"):
        return f"{path}/{'gamma' if last == 'weight' else 'beta'}"
    return f"{path}/{'kernel' if last == 'weight' else last}"


def write_google_checkpoint(
    folder: str | Path,
    *,
    config: BertConfig,
    vocab: list[str],
    lowercase: Lowercase,
    tensors: Mapping[str, np.ndarray],
) -> list[str]:
    """Write `bert_config.json`, `vocab.txt` and `bert_model.ckpt` like google-research/bert.

    Its scripts take them as `--bert_config_file`, `--vocab_file` and `--init_checkpoint`. Kernels
    are [input, output]; heads have the names of their task's script. The casing, which its scripts
    take as a flag, is kept in HuggingFace's `tokenizer_config.json`.

    Args:
        folder: path of the folder; created if missing.
        config: config of the model.
        vocab: entries in the order of their ids.
        lowercase: whether texts are lower-cased before tokenization, and how.
        tensors: float32 by HuggingFace's names.

    Returns:
        Differences between the reference and the model, a sentence each.
    """
    folder = Path(folder)
    fields = config.fields()
    del fields["layer_norm_eps"]  # the reference has one epsilon and one kind of GELU
    fields["hidden_act"] = "relu" if config.hidden_act == "relu" else "gelu"
    write_text_atomically(
        folder / GOOGLE_CONFIG, json.dumps(fields, indent=2, sort_keys=True) + "\n"
    )
    write_vocabulary_files(
        folder, vocab, lowercase=lowercase, max_length=config.max_position_embeddings
    )
    variables = {google_name(name): value for name, value in tensors.items()}
    tf.raw_ops.SaveV2(
        prefix=str(folder / CHECKPOINT),
        tensor_names=list(variables),
        shape_and_slices=[""] * len(variables),
        tensors=[
            value.T if name.endswith("/kernel") else value for name, value in variables.items()
        ],
    )
    notes = departures(config, "google-research/bert")
    if f"{POOLER}.weight" not in tensors:
        notes.append("the model has no pooler; google-research/bert starts with a random one")
    return notes


class CheckpointTensors(Mapping[str, np.ndarray]):
    """Weights of a checkpoint by HuggingFace's names, float32, read on access.

    Args:
        prefix: path of the checkpoint without `.index`.
        num_hidden_layers: blocks of the encoder, for checkpoints of TensorFlow 2.

    Raises:
        InputError: the checkpoint cannot be opened, or a tensor on access is damaged.
    """

    def __init__(self, prefix: str, num_hidden_layers: int):
        for file in sorted(Path(prefix).parent.glob(f"{glob.escape(Path(prefix).name)}.*")):
            check_lfs_pointer(file)
        self._prefix = prefix
        links = contextlib.ExitStack()
        plain = links.enter_context(plain_path(Path(prefix).parent))
        # The reader opens the data only when a tensor is read, so the path must exist until then.
        weakref.finalize(self, links.close)
        try:
            self._reader = tf.train.load_checkpoint(str(plain / Path(prefix).name))
        except _DAMAGED as error:
            raise InputError(f"{prefix}: damaged checkpoint ({_first_line(error)})") from None
        keys = self._reader.get_variable_to_shape_map()
        self._has_objects = OBJECT_GRAPH in keys
        if self._has_objects:
            self._names = tensor_keys(keys, num_hidden_layers)
        else:
            names = {key: huggingface_name(key) for key in keys}
            self._names = {name: key for key, name in names.items() if name is not None}

    def count_numbers(self) -> int:
        """Return the size of all tensors together, without reading them."""
        shapes = self._reader.get_variable_to_shape_map()
        return sum(math.prod(shapes[key]) for key in self._names.values())

    def __getitem__(self, name: str) -> np.ndarray:
        original = self._names[name]
        try:
            value = self._reader.get_tensor(original)
        except _DAMAGED as error:
            reason = f"{original}: {_first_line(error)}"
            raise InputError(f"{self._prefix}: damaged checkpoint ({reason})") from None
        if self._has_objects:
            return huggingface_array(name, value)
        value = value.astype(np.float32)
        return value.T if original.endswith("/kernel") else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _checkpoint_prefix(folder: Path) -> str:
    """Return the path, without `.index`, of the latest checkpoint, or of the only one."""
    prefixes = sorted(str(path.with_suffix("")) for path in folder.glob("*.index"))
    try:
        state = tf.train.get_checkpoint_state(str(folder))
    except ValueError:  # the file that names the latest checkpoint is not UTF-8
        state = None
    if state is not None and state.model_checkpoint_path in prefixes:
        return str(state.model_checkpoint_path)
    if len(prefixes) != 1:
        raise UsageError(
            f"{folder}: expected one checkpoint (bert_model.ckpt.index with its .data file), "
            f"found {len(prefixes)}"
        )
    return prefixes[0]
