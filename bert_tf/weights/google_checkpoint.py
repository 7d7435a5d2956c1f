"""Checkpoints of google-research/bert (TensorFlow 1) and TF Model Garden (2), in and out."""

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
    fresh_pooler,
    further_paths,
    huggingface_array,
    object_array,
    pretraining_paths,
    tensor_keys,
)

CHECKPOINT = "bert_model.ckpt"
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

# What TensorFlow makes of its C++ status codes.
_DAMAGED = (tf.errors.OpError, ValueError, IndexError, NotImplementedError)


def read_google_checkpoint(folder: Path) -> ModelDirectory:
    """The model of a folder with `bert_config.json`, `vocab.txt` and one checkpoint.

    Raises:
        UsageError: a file is missing, there are several checkpoints, or vocabulary and config
            disagree.
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
    """HuggingFace's name of a TensorFlow 1 variable; None for an optimizer's slot or counter."""
    if _OPTIMIZER.search(name):
        return None
    if name in _HEADS:
        return _HEADS[name]
    *scope, last = re.sub(r"/layer_(\d+)/", r"/layer/\1/", name).split("/")
    if scope[-1:] == ["embeddings"]:
        return ".".join([*scope, last, "weight"])
    return ".".join([*scope, _ENDINGS.get(last, last)])


def google_name(name: str) -> str:
    """The TensorFlow 1 variable of HuggingFace's tensor: the inverse of `huggingface_name`."""
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
    """Writes `bert_config.json`, `vocab.txt` and `bert_model.ckpt` as google-research/bert does.

    Its scripts take them as `--bert_config_file`, `--vocab_file` and `--init_checkpoint`. Kernels
    are [input, output]; heads have the names of their task's script. The casing, a flag of these
    scripts, is kept in HuggingFace's `tokenizer_config.json`.

    Args:
        folder: to write to; made if it is missing.
        config: the model's.
        vocab: entries by id.
        lowercase: whether texts are lower-cased before tokenization.
        tensors: float32 by HuggingFace's name.

    Returns:
        Differences between the checkpoint and the model, a sentence each.
    """
    folder = Path(folder)
    write_config_and_vocabulary(folder, config, vocab, lowercase=lowercase)
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


def write_config_and_vocabulary(
    folder: Path, config: BertConfig, vocab: list[str], *, lowercase: Lowercase
) -> None:
    """Writes `bert_config.json`, which has neither epsilons nor kinds of GELU, and `vocab.txt`."""
    fields = config.fields()
    del fields["layer_norm_eps"]
    fields["hidden_act"] = "relu" if config.hidden_act == "relu" else "gelu"
    write_text_atomically(
        folder / GOOGLE_CONFIG, json.dumps(fields, indent=2, sort_keys=True) + "\n"
    )
    write_vocabulary_files(
        folder, vocab, lowercase=lowercase, max_length=config.max_position_embeddings
    )


class CheckpointTensors(Mapping[str, np.ndarray]):
    """A checkpoint's weights by HuggingFace name, float32, read when asked for.

    Args:
        prefix: path of the checkpoint without `.index`.
        num_hidden_layers: blocks of the encoder.

    Raises:
        InputError: the checkpoint cannot be opened; or a tensor, when it is asked for.
    """

    def __init__(self, prefix: str, num_hidden_layers: int):
        for file in sorted(Path(prefix).parent.glob(f"{glob.escape(Path(prefix).name)}.*")):
            check_lfs_pointer(file)
        self._prefix = prefix
        links = contextlib.ExitStack()
        plain = links.enter_context(plain_path(Path(prefix).parent))
        weakref.finalize(self, links.close)  # the reader opens the data when it is asked for them
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
        """Numbers in all tensors, without reading them."""
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
    found = sorted(str(path.with_suffix("")) for path in folder.glob("*.index"))
    try:
        state = tf.train.get_checkpoint_state(str(folder))
    except ValueError:  # the file that names the latest one is not UTF-8
        state = None
    if state is not None and state.model_checkpoint_path in found:
        return str(state.model_checkpoint_path)
    if len(found) != 1:
        raise UsageError(
            f"{folder}: expected one checkpoint (bert_model.ckpt.index with its .data file), "
            f"found {len(found)}"
        )
    return found[0]


_LIBRARY = "TF Model Garden"


def write_model_garden_checkpoint(
    folder: str | Path,
    *,
    config: BertConfig,
    vocab: list[str],
    lowercase: Lowercase,
    tensors: Mapping[str, np.ndarray],
) -> list[str]:
    """Writes `bert_config.json`, `vocab.txt` and the object graph `bert_model.ckpt-1`.

    `tf.train.Checkpoint(encoder=…).read(…)` fills a `BertEncoder` or `BertEncoderV2`, and
    `tf.train.Checkpoint(model=…)` a `BertPretrainerV2` with a next-sentence head; fine-tuning tasks
    take it as their `init_checkpoint`. Encoder and pooler have the keys of the published
    checkpoints. Arguments and result are those of `write_google_checkpoint`.
    """
    folder = Path(folder)
    write_config_and_vocabulary(folder, config, vocab, lowercase=lowercase)
    has_pooler = f"{POOLER}.weight" in tensors
    values = {**({} if has_pooler else fresh_pooler(config)), **tensors}
    paths = dict(pretraining_paths(config.num_hidden_layers))
    variables = {
        path: tf.Variable(object_array(name, values[name], config.num_attention_heads))
        for path, name in paths.items()
        if name in values
    }
    root = _object_graph(variables, further_paths(config.num_hidden_layers))
    root.save(str(folder / CHECKPOINT))
    notes = departures(config, _LIBRARY)
    if not has_pooler:
        notes.append("the model has no pooler; the checkpoint's is random, as a fresh model's")
    if tensors.keys() - set(paths.values()):
        notes.append(
            f"the model's head is left out; {_LIBRARY} reads heads of pretraining alone from such "
            "checkpoints"
        )
    return notes


def _object_graph(
    variables: Mapping[str, tf.Variable], further: Mapping[str, str]
) -> tf.train.Checkpoint:
    """Objects nested as in the paths, some of them also at a further path."""
    root = tf.train.Checkpoint()
    objects: dict[str, object] = {"": root}

    def put(path: str, value: object) -> None:
        parent, _, last = path.rpartition("/")
        if parent not in objects:
            put(parent, tf.Module())
        name = last.replace(".S", "/").replace("..", ".")  # TensorFlow escapes them in keys
        setattr(objects[parent], name, value)
        objects[path] = value

    for path, variable in variables.items():
        put(path, variable)
    # After all first paths: of equally long paths the earlier one becomes the key.
    for path, first in further.items():
        if first in objects:
            put(path, objects[first])
    return root
