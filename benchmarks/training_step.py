"""Times one pretraining update: ours against KerasHub's BERT backbone with its masked-LM head.

    python benchmarks/training_step.py [--precision mixed_bfloat16] [--no-xla] [--rounds 5]

Both sides do forward pass, backward pass and AdamW on the same random batch, dropout on, and take
turns, so that other load on the machine falls on both. Ours also computes the next-sentence loss.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.config.processor import describe_processor
from bert_tf.models.pretraining import BertPretrainingModel


def random_batch(config: BertConfig, rows: int, length: int, predictions: int) -> dict:
    """A full batch without padding, as packed pretraining data nearly is."""
    generator = np.random.default_rng(0)
    ids = generator.integers(0, config.vocab_size, (rows, length))
    batch = {
        "input_word_ids": ids,
        "input_mask": np.ones_like(ids),
        "input_type_ids": np.arange(length)[None, :].repeat(rows, 0) >= length // 2,
        "masked_lm_positions": np.sort(generator.integers(0, length, (rows, predictions))),
        "masked_lm_ids": generator.integers(0, config.vocab_size, (rows, predictions)),
        "next_sentence_labels": generator.integers(0, 2, rows),
    }
    return {name: tf.constant(value, tf.int32) for name, value in batch.items()}


def mean_cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))
    return tf.reduce_mean(losses)


def make_step(model: keras.Model, loss: Callable, *, xla: bool) -> Callable:
    """A compiled update of the model's weights."""
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, epsilon=1e-6)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=xla)
    def step(batch, key):
        with tf.GradientTape() as tape:
            value = loss(batch, key)
        gradients = tape.gradient(value, [v.value for v in model.trainable_variables])
        optimizer.apply(gradients)
        return value

    return step


def our_step(config: BertConfig, policy: str, *, xla: bool) -> Callable:
    model = BertPretrainingModel(config, dtype=policy)
    model.build_weights()

    def loss(batch, key):
        outputs = model(batch, training=True, dropout_key=key)
        masked = mean_cross_entropy(batch["masked_lm_ids"], outputs["mlm_logits"])
        return masked + mean_cross_entropy(batch["next_sentence_labels"], outputs["nsp_logits"])

    return make_step(model, loss, xla=xla)


def keras_hub_step(config: BertConfig, policy: str, *, xla: bool) -> Callable:
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        dtype=policy,
    )
    model = keras_hub.models.BertMaskedLM(backbone)

    def loss(batch, key):
        inputs = {
            "token_ids": batch["input_word_ids"],
            "segment_ids": batch["input_type_ids"],
            "padding_mask": batch["input_mask"],
            "mask_positions": batch["masked_lm_positions"],
        }
        return mean_cross_entropy(batch["masked_lm_ids"], model(inputs, training=True))

    return make_step(model, loss, xla=xla)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--precision", default="float32", help="Keras policy")
    parser.add_argument("--xla", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()
    config = BertConfig(
        vocab_size=30522,
        hidden_size=options.width,
        num_hidden_layers=options.layers,
        num_attention_heads=options.width // 64,
        intermediate_size=4 * options.width,
        hidden_act="gelu_new",
        hidden_dropout_prob=options.dropout,
        attention_probs_dropout_prob=options.dropout,
    )
    batch = random_batch(config, options.batch_size, options.length, options.predictions)
    steps = {
        "ours": our_step(config, options.precision, xla=options.xla),
        "KerasHub": keras_hub_step(config, options.precision, xla=options.xla),
    }
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    busy: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(options.rounds + 1):
        for name, step in steps.items():
            start, start_busy = time.perf_counter(), time.process_time()
            step(batch, tf.constant([1, turn])).numpy()
            if turn:  # the first one compiles
                seconds[name].append(time.perf_counter() - start)
                busy[name].append(time.process_time() - start_busy)
    print(f"processor: {describe_processor()}")
    print(
        f"{options.layers} layers x {options.width}, batch {options.batch_size} x "
        f"{options.length}, {options.predictions} predictions, {options.precision}, "
        f"XLA {options.xla}, dropout {options.dropout}, median of {options.rounds}"
    )
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    median_busy = {name: float(np.median(values)) for name, values in busy.items()}
    for name, value in median.items():
        print(
            f"{name:9} {value:7.3f} s/step  {options.batch_size / value:7.2f} examples/s  "
            f"{median_busy[name]:7.3f} processor seconds/step"
        )
    print(
        f"ratio     {median['KerasHub'] / median['ours']:.2f} times KerasHub's speed, "
        f"{median_busy['KerasHub'] / median_busy['ours']:.2f} by processor time"
    )


if __name__ == "__main__":
    main()
