"""Writes TensorFlow 2 checkpoints as TF Model Garden's pretraining saves them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.data.text.casing import Lowercase
from bert_tf.weights.google_checkpoint import CHECKPOINT, write_config_and_vocabulary
from bert_tf.weights.object_checkpoint import further_paths, object_array, pretraining_paths
from bert_tf.weights.original_bert import POOLER, departures, fresh_pooler

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
    checkpoints. The casing is kept in HuggingFace's `tokenizer_config.json`.

    Args:
        folder: to write to; made if it is missing.
        config: the model's.
        vocab: entries by id.
        lowercase: whether texts are lower-cased before tokenization.
        tensors: float32 by HuggingFace's name.

    Returns:
        What the checkpoint lacks or its library computes otherwise than the model, a sentence each.
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
    """Objects nested as in the paths, some of them reached by a further path as well."""
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
