"""Writes a HuggingFace folder's weights as TF Model Garden saves them: an object graph.

    python tests/bert_tf/weights/object_checkpoints.py HUGGINGFACE_FOLDER OUTPUT [STYLE]

Styles: "numbered", a functional encoder with a masked-LM head, as the published checkpoints
(`encoder/layer_with_weights-4/_attention_layer/_query_dense/kernel`, read by
`convert_bert_original_tf2_checkpoint_to_pytorch.py` of transformers and by KerasNLP's conversion
scripts); "called", layers by attribute
(`convert_bert_token_dropping_original_tf2_checkpoint_to_pytorch.py`); "nested", the encoder of a
classifier saved with its optimizer, attention's output projection outside of attention as in TF
Model Garden 2.1 and NVIDIA's examples; "trained", a `BertPretrainerV2` after pretraining: objects
under all names that its classes give them, the word embeddings first reached through the masked-LM
head, an encoder's pooler that was never trained (checkpoints of TF Model Garden 2.10, as
cl-tohoku/bert-japanese converts them).
"""

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.weights.tensor_files import FolderTensors

TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")
CALLED_TABLES = ("_embedding_layer", "_position_embedding_layer", "_type_embedding_layer")
BLOCK = {
    "attention.self.query": "_attention_layer/_query_dense",
    "attention.self.key": "_attention_layer/_key_dense",
    "attention.self.value": "_attention_layer/_value_dense",
    "attention.output.dense": "_attention_layer/_output_dense",
    "attention.output.LayerNorm": "_attention_layer_norm",
    "intermediate.dense": "_intermediate_dense",
    "output.dense": "_output_dense",
    "output.LayerNorm": "_output_layer_norm",
}


def make_object_checkpoint(source: Path, folder: Path, *, style: str) -> None:
    """Write `bert_config.json`, `vocab.txt` and `bert_model.ckpt-1`."""
    folder.mkdir(parents=True)
    config = json.loads((source / "config.json").read_text())
    del config["model_type"]
    (folder / "bert_config.json").write_text(json.dumps(config))
    shutil.copy(source / "vocab.txt", folder)
    object_tree(FolderTensors(source), style=style, config=config).save(
        str(folder / "bert_model.ckpt")
    )


def object_tree(
    tensors: Mapping[str, np.ndarray], *, style: str, config: dict
) -> tf.train.Checkpoint:
    """Return the objects whose checkpoint holds HuggingFace's tensors."""
    root = tf.train.Checkpoint()
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    for name, value in tensors.items():
        path = object_path(name, "numbered" if style == "trained" else style, layers)
        if path is not None:
            put(root, path.split("/"), garden_array(name, value, heads))
    if style == "nested":
        put(root, ["optimizer", "learning_rate"], np.float32(0.1))
    if style == "trained":
        name_as_pretrainer(root, tensors, layers)
    return root


def name_as_pretrainer(
    root: tf.train.Checkpoint, tensors: Mapping[str, np.ndarray], layers: int
) -> None:
    """Add the objects that `BertPretrainerV2` and its parts track beside the numbered layers."""
    encoder, masked_lm = root.encoder, root.masked_lm
    pooler = getattr(root, "next_sentence.pooler_dense")
    for part in ("kernel", "bias"):
        untrained = np.full_like(getattr(pooler, part), 0.5)
        put(encoder, [f"layer_with_weights-{layers + 4}", part], untrained)
    numbered = [getattr(encoder, f"layer_with_weights-{number}") for number in range(layers + 5)]
    for called, layer in zip(CALLED_TABLES, numbered[:3], strict=True):
        setattr(encoder, called, layer)
    encoder._embedding_norm_layer = numbered[3]
    encoder._transformer_layers = numbered[4:-1]
    encoder._pooler_layer = numbered[-1]
    bias = masked_lm.bias
    del masked_lm.bias
    setattr(masked_lm, "output_bias/bias", bias)
    masked_lm.bias = bias
    masked_lm.embedding_table = numbered[0].embeddings
    head = tf.Module()
    head.dense = pooler
    put(head, ["out_proj", "kernel"], tensors["cls.seq_relationship.weight"].T)
    put(head, ["out_proj", "bias"], tensors["cls.seq_relationship.bias"])
    root.model = tf.Module()
    root.model.encoder_network = encoder
    root.model.masked_lm = masked_lm
    root.model.classification_heads = [head]


def object_path(name: str, style: str, layers: int) -> str | None:
    """Return the path of a tensor in TF Model Garden; None if this style has no such head."""
    stem, _, last = name.rpartition(".")
    last = {"weight": "gamma", "bias": "beta"}[last] if stem.endswith("LayerNorm") else last
    last = "kernel" if last == "weight" else last
    encoder = "model/layer_with_weights-0" if style == "nested" else "encoder"
    table = re.fullmatch(r"bert\.embeddings\.(\w+_embeddings)", stem)
    block = re.fullmatch(r"bert\.encoder\.layer\.(\d+)\.(.+)", stem)
    called = style == "called"
    if table:
        number = TABLES.index(table[1])
        layer = CALLED_TABLES[number] if called else f"layer_with_weights-{number}"
        return f"{encoder}/{layer}/embeddings"
    if stem == "bert.embeddings.LayerNorm":
        return f"{encoder}/{'_embedding_norm_layer' if called else 'layer_with_weights-3'}/{last}"
    if block:
        number = int(block[1])
        layer = f"_transformer_layers/{number}" if called else f"layer_with_weights-{number + 4}"
        part = BLOCK[block[2]]
        if style == "nested":
            part = part.replace("_attention_layer/_output_dense", "_attention_output_dense")
        return f"{encoder}/{layer}/{part}/{last}"
    if stem == "bert.pooler.dense":
        if style == "numbered":  # as the published checkpoints
            return f"next_sentence.pooler_dense/{last}"
        return (
            f"{encoder}/{'_pooler_layer' if called else f'layer_with_weights-{layers + 4}'}/{last}"
        )
    if style == "nested" or stem.startswith("cls.seq_relationship"):
        return None
    return {
        "cls.predictions": "masked_lm/bias",
        "cls.predictions.transform.dense": f"masked_lm/dense/{last}",
        "cls.predictions.transform.LayerNorm": f"masked_lm/layer_norm/{last}",
    }[stem]


def garden_array(name: str, value: np.ndarray, heads: int) -> np.ndarray:
    """Kernels as [input, output], attention's with heads as an axis of their own."""
    if value.ndim == 2 and "embeddings" not in name:
        value = value.T
    if ".attention.self." in name:
        return value.reshape(*value.shape[:-1], heads, -1)
    if name.endswith("attention.output.dense.weight"):
        return value.reshape(heads, -1, value.shape[-1])
    return value


def put(parent: tf.Module, path: list[str], value: np.ndarray) -> None:
    """A variable at the end of a path of attributes."""
    for name in path[:-1]:
        if not hasattr(parent, name):
            setattr(parent, name, tf.Module())
        parent = getattr(parent, name)
    setattr(parent, path[-1], tf.Variable(value))


if __name__ == "__main__":
    make_object_checkpoint(
        Path(sys.argv[1]), Path(sys.argv[2]), style=sys.argv[3] if len(sys.argv) > 3 else "numbered"
    )
