"""Our side of benchmarks/gpu_throughput.py: the models on Keras' JAX backend, compiled by XLA.

    python benchmarks/gpu_throughput_jax.py ours SETTINGS

Needs jax and keras, not TensorFlow; for what it prints and reads see side.py.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"
# Another process works on the same card.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import keras
import numpy as np
from jax import numpy as jnp

from bert_tf.config.bert import BertConfig
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import BertPretrainingModel


def random_batch(config: BertConfig, work: dict) -> dict[str, jax.Array]:
    """Full rows on the device."""
    rows, length, predictions = (work[key] for key in ("rows", "length", "predictions"))
    generator = np.random.default_rng(0)
    batch = {
        "input_word_ids": generator.integers(0, config.vocab_size, (rows, length)),
        "input_mask": np.ones((rows, length)),
        "input_type_ids": np.repeat([np.arange(length) >= length // 2], rows, 0),
        "masked_lm_positions": generator.integers(0, length, (rows, predictions)),
        "masked_lm_ids": generator.integers(0, config.vocab_size, (rows, predictions)),
        "next_sentence_labels": generator.integers(0, 2, rows),
    }
    return {name: jnp.asarray(value, jnp.int32) for name, value in batch.items()}


def cross_entropy(labels: jax.Array, logits: jax.Array) -> jax.Array:
    losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    return jnp.mean(losses)


def forward_step(config: BertConfig, batch: dict[str, jax.Array]) -> Callable[[], Any]:
    """The encoder's outputs."""
    model = BertEncoder(config, dtype="mixed_bfloat16")
    model.build_weights()
    frozen = [variable.value for variable in model.non_trainable_variables]
    weights = [variable.value for variable in model.trainable_variables]

    @jax.jit
    def outputs(weights: list[jax.Array], batch: dict[str, jax.Array]) -> dict[str, jax.Array]:
        encoded, _ = model.stateless_call(
            weights,
            frozen,
            batch["input_word_ids"],
            input_type_ids=batch["input_type_ids"],
            attention_mask=batch["input_mask"],
        )
        return encoded

    return lambda: outputs(weights, batch)


def training_step(config: BertConfig, batch: dict[str, jax.Array]) -> Callable[[], Any]:
    """The pretraining loss and its gradients."""
    model = BertPretrainingModel(config, dtype="mixed_bfloat16")
    model.build_weights()
    frozen = [variable.value for variable in model.non_trainable_variables]
    weights = [variable.value for variable in model.trainable_variables]

    @jax.jit
    @jax.value_and_grad
    def loss(weights: list[jax.Array], batch: dict[str, jax.Array]) -> jax.Array:
        outputs, _ = model.stateless_call(weights, frozen, batch)
        masked = cross_entropy(batch["masked_lm_ids"], outputs["mlm_logits"])
        return masked + cross_entropy(batch["next_sentence_labels"], outputs["nsp_logits"])

    return lambda: loss(weights, batch)


def matmul_step(size: int) -> Callable[[], Any]:
    """One matrix product."""
    matrix = jax.random.normal(jax.random.key(0), (size, size), jnp.bfloat16)
    product = jax.jit(jnp.matmul)
    return lambda: product(matrix, matrix)


def seconds_per_step(step: Callable[[], Any], steps: int) -> float:
    jax.block_until_ready(step())
    start = time.perf_counter()
    for _ in range(steps):
        result = step()
    jax.block_until_ready(result)
    return (time.perf_counter() - start) / steps


def main() -> None:
    settings = json.loads(sys.argv[2])
    config = BertConfig(**settings["config"])
    makers = {"forward": forward_step, "training": training_step}
    steps = {
        work["name"]: makers[work["kind"]](config, random_batch(config, work))
        for work in settings["work"]
    }
    steps["matmul"] = matmul_step(settings["peak_size"])
    for step in steps.values():
        jax.block_until_ready(step())
    print("ready", flush=True)
    for line in sys.stdin:
        request = line.strip()
        answer: dict[str, Any] = {"seconds": seconds_per_step(steps[request], settings["steps"])}
        if request == "matmul":
            answer["operations_per_second"] = 2 * settings["peak_size"] ** 3 / answer["seconds"]
            answer["device"] = jax.devices()[0].device_kind
            answer["versions"] = f"jax {jax.__version__}, keras {keras.__version__}"
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
