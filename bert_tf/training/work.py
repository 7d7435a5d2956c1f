"""How much arithmetic training needs, and how much the machine can do."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.training.strategy import worker_count

_SECONDS = 0.3
_SIZES = {"CPU": 1024, "GPU": 8192}


@dataclasses.dataclass(frozen=True)
class ModelWork:
    """Floating-point operations of a training step by the model's formulas (`flops`).

    Attributes:
        token_parameters: weights that every token is multiplied with.
        example_parameters: weights that some tokens of every sequence are multiplied with, times
            the number of these tokens.
        attention_width: layers x hidden size.
    """

    token_parameters: int
    example_parameters: int
    attention_width: int

    @classmethod
    def of_encoder(cls, config: BertConfig, *, predictions: int = 0) -> ModelWork:
        """The encoder with its pooler, and the masked-LM head.

        Other heads, which are a thousandth of it, are left out.

        Args:
            config: the model's.
            predictions: masked positions of a sequence; 0 without a masked-LM head.
        """
        hidden = config.hidden_size
        layer = 4 * hidden * hidden + 2 * hidden * config.intermediate_size
        return cls(
            token_parameters=config.num_hidden_layers * layer,
            example_parameters=hidden * hidden
            + predictions * hidden * (hidden + config.vocab_size),
            attention_width=config.num_hidden_layers * hidden,
        )

    def flops(self, tokens: Any, examples: Any) -> np.ndarray:
        """Operations of forward and backward pass, without what padding and recomputing cost.

        6 operations a weight and token (a multiplication and an addition, forward once, backward
        twice; Kaplan et al. 2020, section 2.1), and 12 x layers x hidden x length a token for
        attention's scores and sums (PaLM, Chowdhery et al. 2022, appendix B), with the mean length
        of the sequences.

        Args:
            tokens: pieces without padding, one number an update.
            examples: sequences, likewise.
        """
        tokens, examples = np.asarray(tokens, np.float64), np.asarray(examples, np.float64)
        length = tokens / np.maximum(examples, 1.0)
        return (
            6.0 * (self.token_parameters * tokens + self.example_parameters * examples)
            + 12.0 * self.attention_width * length * tokens
        )


def measure_matmul_peak(policy: str, strategy: tf.distribute.Strategy) -> float | None:
    """Operations a second of one large matrix product after the other, on all of the run's devices.

    Takes less than a second. Replicas on GPUs are taken to be alike; those on processors share one.

    Args:
        policy: Keras dtype policy, whose compute dtype is measured.
        strategy: of the run.

    Returns:
        None on TPUs, where single operations are no measure.
    """
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return None
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    size = _SIZES[kind]
    dtype = {"mixed_bfloat16": tf.bfloat16, "mixed_float16": tf.float16}.get(policy, tf.float32)
    matrix = tf.fill([size, size], tf.cast(1.0 / size, dtype))

    @tf.function
    def product(matrix: tf.Tensor) -> tf.Tensor:
        return tf.reduce_max(matrix @ matrix)

    product(matrix).numpy()  # traced, and the device awake
    start, best = time.monotonic(), float("inf")
    while time.monotonic() - start < _SECONDS:
        begin = time.monotonic()
        product(matrix).numpy()
        best = min(best, time.monotonic() - begin)
    devices = strategy.num_replicas_in_sync if kind == "GPU" else worker_count(strategy)
    return devices * 2.0 * size**3 / best
