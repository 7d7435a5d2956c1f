"""A side of benchmarks/scoring.py in this project's environment: an engine, or KerasHub's model.

    python benchmarks/scoring_side.py NAME MODEL TEXTS

NAME is an engine and a precision ("openvino bfloat16") or "KerasHub"; MODEL an exported folder;
TEXTS a JSON list. The protocol is that of side.py.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import numpy as np
from side import take_turns

from bert_tf.base.processor import usable_cores
from bert_tf.data.rows.encoded_rows import budgeted_batches
from bert_tf.engines.registry import ENGINES, declare_frozen_weights
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS
from pipeline.cli.startup import keep_freed_memory

Score = Callable[[list[str]], np.ndarray]
"""From texts to the probabilities of all labels, [rows, labels]."""


def engine_side(name: str, folder: str) -> Score:
    keep_freed_memory()
    declare_frozen_weights()
    engine_name, precision = name.split()
    engine = ENGINES[engine_name].load(folder, threads=usable_cores(), precision=precision)

    def score(texts: list[str]) -> np.ndarray:
        return engine.predict({"text": texts})["probabilities"]

    return score


def keras_hub_side(folder: str) -> Score:
    """Their backbone in a tf.function, with our tokenizer and batches."""
    import keras_hub
    import tensorflow as tf

    from bert_tf.data.rows.host_rows import pack_host_texts
    from bert_tf.export.loading import load_trained_model
    from bert_tf.weights.model_directory import read_model_directory

    trained = load_trained_model(read_model_directory(folder))
    assert trained.task is not None
    max_length = trained.task.max_seq_length
    backbone = keras_hub.models.BertBackbone.from_preset(folder, load_weights=True)
    kernel, bias = trained.model.classifier.kernel, trained.model.classifier.bias
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids, ids, ids])
    def probabilities(token_ids, padding_mask, segment_ids):
        pooled = backbone(
            {"token_ids": token_ids, "padding_mask": padding_mask, "segment_ids": segment_ids}
        )["pooled_output"]
        return tf.nn.softmax(tf.matmul(pooled, kernel.value) + bias.value)

    def score(texts: list[str]) -> np.ndarray:
        tokens = trained.tokenizer.tokenize_texts(texts)
        rows = pack_host_texts(tokens, max_seq_length=max_length, tokenizer=trained.tokenizer)
        found = np.zeros((len(rows), kernel.shape[-1]), np.float32)
        for chosen in budgeted_batches(rows.lengths, budget=DEFAULT_BATCH_TOKENS, multiple=8):
            batch = rows.padded(
                chosen, length=int(rows.lengths[chosen].max()), pad_id=trained.tokenizer.pad_id
            )
            names = ("input_word_ids", "input_mask", "input_type_ids")
            found[chosen] = probabilities(*(tf.constant(batch[name]) for name in names)).numpy()
        return found

    return score


def main() -> None:
    name, folder, texts_file = sys.argv[1:]
    texts = json.loads(Path(texts_file).read_text(encoding="utf-8"))
    score = keras_hub_side(folder) if name == "KerasHub" else engine_side(name, folder)
    take_turns(score, texts)


if __name__ == "__main__":
    main()
