"""Names and shapes in TensorFlow 2 checkpoints of TF Model Garden and its descendants.

These checkpoints name variables by the path from the saved object. An encoder is `encoder` or
`model` (TF Model Garden's `tf2_bert_encoder_checkpoint_converter.py`) or inside a model
(`BertPretrainerV2`; NVIDIA's DeepLearningExamples). Its layers have numbers (`layer_with_weights-4`
is the first block) or names (`_transformer_layers/0`). If several paths lead to a variable, the key
is the shortest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from bert_tf.config.bert import BertConfig

POOLER = "bert.pooler.dense"
_LAYER_NORM_EPS = 1e-12  # of the original BERT
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_NUMBERED = re.compile(
    r"(?:(?:model|encoder)/)*(?:layer_with_weights-0/)?layer_with_weights-(\d+)/(.+)"
)
_CALLED = re.compile(r"(?:model/)?(?:encoder/)?(_transformer_layers/\d+|_\w+_layer)/(.+)")
_BLOCK = {
    "_attention_layer/_query_dense": "attention.self.query",
    "_attention_layer/_key_dense": "attention.self.key",
    "_attention_layer/_value_dense": "attention.self.value",
    "_attention_layer/_output_dense": "attention.output.dense",
    "_attention_output_dense": "attention.output.dense",
    "_attention_layer_norm": "attention.output.LayerNorm",
    "_intermediate_dense": "intermediate.dense",
    "_output_dense": "output.dense",
    "_output_layer_norm": "output.LayerNorm",
}
_NEXT_SENTENCE = "next_sentence.."
_FIRST_HEAD = "model/classification_heads/0"
_HEADS = {
    "masked_lm/dense": "cls.predictions.transform.dense",
    "masked_lm/layer_norm": "cls.predictions.transform.LayerNorm",
    f"{_NEXT_SENTENCE}pooler_dense": "bert.pooler.dense",
    f"{_NEXT_SENTENCE}logits": "cls.seq_relationship",
    f"{_FIRST_HEAD}/out_proj": "cls.seq_relationship",
}
_HEAD_VARIABLES = {
    "masked_lm/output_bias.Sbias": "cls.predictions.bias",
    "masked_lm/bias": "cls.predictions.bias",
    "masked_lm/embedding_table": "bert.embeddings.word_embeddings.weight",
}


def departures(config: BertConfig, library: str) -> list[str]:
    """Return the differences of a library's BERT from the model, a sentence each."""
    notes = []
    if config.hidden_act == "gelu":
        notes.append(
            f"the model has the exact GELU, {library} its tanh approximation; "
            "outputs will differ slightly"
        )
    if config.layer_norm_eps != _LAYER_NORM_EPS:
        notes.append(
            f"the model's layer_norm_eps is {config.layer_norm_eps:g}, {library} has "
            f"{_LAYER_NORM_EPS:g}; outputs will differ slightly"
        )
    return notes


def tensor_keys(keys: Iterable[str], num_hidden_layers: int) -> dict[str, str]:
    """Return the key of each tensor in a checkpoint with an object graph.

    Variables of optimizers, counters, and heads of other tasks are left out. If there are two
    poolers, that of the next-sentence head is taken: TF Model Garden's pretraining leaves the
    encoder's untrained.

    Args:
        keys: keys of the checkpoint.
        num_hidden_layers: blocks of the encoder; the numbered layer after them is the pooler.

    Returns:
        Keys by HuggingFace's names.
    """
    # A later key replaces an earlier one of the same name, so the next-sentence head comes last.
    keys = sorted(keys, key=lambda key: (_NEXT_SENTENCE in key, key))
    # The first head of a model may also be that of another task.
    first_is_next_sentence = any(_NEXT_SENTENCE in key for key in keys)
    layers = _encoder_layers(num_hidden_layers)
    names = {
        key: _tensor_name(key, layers)
        for key in keys
        if first_is_next_sentence or not key.startswith(_FIRST_HEAD)
    }
    return {name: key for key, name in names.items() if name is not None}


def huggingface_array(name: str, value: np.ndarray) -> np.ndarray:
    """Convert the value of a variable to HuggingFace's layout: heads joined, kernels [output,
    input].

    Args:
        name: HuggingFace's name of the tensor.
        value: attention kernels are [hidden, heads, head] or [heads, head, hidden], their biases
            [heads, head]; all others are matrices or vectors.
    """
    value = value.astype(np.float32)
    if name.endswith(".bias") or "LayerNorm" in name:
        return value.reshape(-1)
    if "embeddings" in name:
        return value
    if name.endswith("attention.output.dense.weight"):
        return value.reshape(-1, value.shape[-1]).T
    return value.reshape(value.shape[0], -1).T


def _encoder_layers(blocks: int) -> dict[str, str]:
    """Return HuggingFace's name of each layer by its attribute, in the order of layer numbers."""
    return {
        "_embedding_layer": "bert.embeddings.word_embeddings",
        "_position_embedding_layer": "bert.embeddings.position_embeddings",
        "_type_embedding_layer": "bert.embeddings.token_type_embeddings",
        "_embedding_norm_layer": "bert.embeddings.LayerNorm",
        **{f"_transformer_layers/{i}": f"bert.encoder.layer.{i}" for i in range(blocks)},
        "_pooler_layer": "bert.pooler.dense",
    }


def _tensor_name(key: str, layers: dict[str, str]) -> str | None:
    """Return HuggingFace's name of a key; None if it is not a weight of BERT."""
    if not key.endswith(_VALUE) or ".OPTIMIZER_SLOT" in key or "optimizer" in key.split("/")[0]:
        return None
    path = key.removesuffix(_VALUE)
    for inner in (path, path.removeprefix("model/")):
        if inner in _HEAD_VARIABLES:
            return _HEAD_VARIABLES[inner]
        part, _, last = inner.rpartition("/")
        if part in _HEADS:
            return _joined(_HEADS[part], last)
    if match := _NUMBERED.fullmatch(path):
        layer = dict(enumerate(layers.values())).get(int(match[1]))
    elif match := _CALLED.fullmatch(path):
        layer = layers.get(match[1])
    if not match or layer is None:
        return None
    part, _, last = match[2].rpartition("/")
    if not part:
        return _joined(layer, last)
    inside = _BLOCK.get(part)
    return _joined(f"{layer}.{inside}", last) if inside else None


def _joined(layer: str, last: str) -> str | None:
    """Return the name of a layer's variable; None if HuggingFace's layer has no such variable."""
    if layer.endswith("_embeddings"):
        endings = {"embeddings": "weight"}
    elif layer.endswith("LayerNorm"):
        endings = {"gamma": "weight", "beta": "bias"}
    else:
        endings = {"kernel": "weight", "bias": "bias"}
    return f"{layer}.{endings[last]}" if last in endings else None
