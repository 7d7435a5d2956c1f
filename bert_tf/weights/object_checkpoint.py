"""Names and shapes in TensorFlow 2 checkpoints of TF Model Garden and of what came out of it.

Such a checkpoint names variables by the path from the object that was saved. TF Model Garden's
`tf2_encoder_checkpoint_converter.py` saves an encoder as `encoder` or `model`; its pretraining, and
NVIDIA's (DeepLearningExamples, TensorFlow2/LanguageModeling/BERT), save the same encoder inside a
model. A functional encoder numbers its layers (`layer_with_weights-4` is the first block), a later
one calls them by attribute (`_transformer_layers/0`).
"""

from __future__ import annotations

import re

import numpy as np

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_NUMBERED = re.compile(
    r"(?:(?:model|encoder)/)*(?:layer_with_weights-0/)?layer_with_weights-(\d+)/(.+)"
)
_CALLED = re.compile(r"(?:model/)?(?:encoder/)?(_transformer_layers/(\d+)/|_\w+_layer/)(.+)")
_HEAD = re.compile(r"(?:model/)?(masked_lm|next_sentence\.\.\w+)/(.+)")

_EMBEDDINGS = ("word_embeddings", "position_embeddings", "token_type_embeddings")
_FIRST_BLOCK = 4  # after the three tables and their layer norm
_LAYERS = {
    "_embedding_layer/": "bert.embeddings.word_embeddings",
    "_position_embedding_layer/": "bert.embeddings.position_embeddings",
    "_type_embedding_layer/": "bert.embeddings.token_type_embeddings",
    "_embedding_norm_layer/": "bert.embeddings.LayerNorm",
    "_pooler_layer/": "bert.pooler.dense",
}
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
_HEADS = {
    "masked_lm/dense": "cls.predictions.transform.dense",
    "masked_lm/layer_norm": "cls.predictions.transform.LayerNorm",
    "next_sentence..pooler_dense": "bert.pooler.dense",
    "next_sentence..logits": "cls.seq_relationship",
}
_ENDINGS = {
    "kernel": "weight",
    "embeddings": "weight",
    "gamma": "weight",
    "beta": "bias",
    "bias": "bias",
}


def object_tensor_name(key: str, num_hidden_layers: int) -> str | None:
    """HuggingFace's name of a checkpoint key.

    Args:
        key: of a checkpoint with an object graph.
        num_hidden_layers: blocks of the encoder; the numbered layer after them is the pooler.

    Returns:
        None for optimizers' variables, counters, and heads of other tasks.
    """
    if not key.endswith(_VALUE) or ".OPTIMIZER_SLOT" in key or "optimizer" in key.split("/")[0]:
        return None
    path = key.removesuffix(_VALUE)
    if path in ("masked_lm/bias", "model/masked_lm/bias"):
        return "cls.predictions.bias"
    numbered, called, head = (pattern.fullmatch(path) for pattern in (_NUMBERED, _CALLED, _HEAD))
    if numbered:
        layer, rest = _numbered_layer(int(numbered[1]), num_hidden_layers), numbered[2]
    elif called:
        layer, rest = _LAYERS.get(called[1], f"bert.encoder.layer.{called[2]}"), called[3]
    elif head:
        part, _, last = path.removeprefix("model/").rpartition("/")
        return _joined(_HEADS.get(part), last)
    else:
        return None
    part, _, last = rest.rpartition("/")
    if part:  # inside a block
        layer = f"{layer}.{_BLOCK[part]}" if part in _BLOCK and layer else None
    return _joined(layer, last)


def huggingface_array(name: str, value: np.ndarray) -> np.ndarray:
    """A variable's value as HuggingFace keeps it: heads joined, kernels as [output, input].

    Args:
        name: HuggingFace's.
        value: attention kernels [hidden, heads, head] or [heads, head, hidden], biases
            [heads, head]; everything else is two-dimensional or a vector.
    """
    value = value.astype(np.float32)
    if name.endswith(".bias") or "LayerNorm" in name:
        return value.reshape(-1)
    if "embeddings" in name:
        return value
    if name.endswith("attention.output.dense.weight"):
        return value.reshape(-1, value.shape[-1]).T
    return value.reshape(value.shape[0], -1).T


def _numbered_layer(number: int, blocks: int) -> str | None:
    if number < len(_EMBEDDINGS):
        return f"bert.embeddings.{_EMBEDDINGS[number]}"
    if number < _FIRST_BLOCK:
        return "bert.embeddings.LayerNorm"
    if number < _FIRST_BLOCK + blocks:
        return f"bert.encoder.layer.{number - _FIRST_BLOCK}"
    return "bert.pooler.dense" if number == _FIRST_BLOCK + blocks else None


def _joined(layer: str | None, last: str) -> str | None:
    return f"{layer}.{_ENDINGS[last]}" if layer and last in _ENDINGS else None
