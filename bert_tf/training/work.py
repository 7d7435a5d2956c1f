"""How much arithmetic training needs, and how much the machine can do."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.training.protocols import Batch
from bert_tf.training.strategy import worker_count

WORK_COUNTS = ("tokens", "examples", "squared_lengths", "predictions")
_SECONDS = 0.3
_SIZES = {"CPU": 1024, "GPU": 8192}


def count_work(batch: Batch) -> dict[str, tf.Tensor]:
    """What `ModelWork.flops` reckons with, counted in a batch, padded or packed; float32 [] each.

    Sequences of 3 and 2 pieces, with 2 targets and 1, in two rows or in one:

    | `tokens` | `examples` | `squared_lengths` | `predictions` |
    |----------|------------|-------------------|---------------|
    | 5        | 2          | 9 + 4             | 3             |

    Args:
        batch: see `bert_tf.training.protocols.TrainingInputs.batches`.
    """
    mask = tf.cast(batch["input_mask"], tf.float32)
    lengths = tf.reduce_sum(mask, axis=-1)
    if "sequence_ids" in batch:
        examples = tf.cast(tf.reduce_max(batch["sequence_ids"], axis=-1), tf.float32)
        # 1 + 3 + 5 + … over the positions of a sequence is the square of its length.
        squares = mask * (2.0 * tf.cast(batch["position_ids"], tf.float32) + 1.0)
    else:
        examples = tf.cast(lengths > 0, tf.float32)
        squares = lengths**2
    targets = batch.get("masked_lm_weights", tf.zeros(0))
    return {
        "tokens": tf.reduce_sum(lengths),
        "examples": tf.reduce_sum(examples),
        "squared_lengths": tf.reduce_sum(squares),
        "predictions": tf.reduce_sum(tf.cast(targets > 0, tf.float32)),
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelWork:
    """Floating-point operations of a training step by the model's formulas (`flops`).

    Attributes:
        token_parameters: weights that every token is multiplied with.
        example_parameters: weights that one token of every sequence is multiplied with.
        prediction_parameters: weights that every masked token is multiplied with.
        attention_width: layers x hidden size.
    """

    token_parameters: int
    example_parameters: int
    prediction_parameters: int
    attention_width: int

    @classmethod
    def of_encoder(cls, config: BertConfig) -> ModelWork:
        """The encoder with its pooler, and the masked-LM head.

        Other heads, which are a thousandth of it, are left out.
        """
        hidden = config.hidden_size
        layer = 4 * hidden * hidden + 2 * hidden * config.intermediate_size
        return cls(
            token_parameters=config.num_hidden_layers * layer,
            example_parameters=hidden * hidden,
            prediction_parameters=hidden * (hidden + config.vocab_size),
            attention_width=config.num_hidden_layers * hidden,
        )

    def flops(
        self, *, tokens: Any, examples: Any, squared_lengths: Any, predictions: Any
    ) -> np.ndarray:
        """Operations of forward and backward pass, without what padding and recomputing cost.

        6 operations a weight and token (a multiplication and an addition, forward once, backward
        twice; Kaplan et al. 2020, section 2.1), and 12 x layers x hidden for each two tokens that
        see each other, for attention's scores and sums (PaLM, Chowdhery et al. 2022, appendix B).

        Args:
            tokens: pieces without padding, one number an update.
            examples: sequences, likewise.
            squared_lengths: sum of the squares of their lengths, likewise.
            predictions: masked positions, likewise; 0 without a masked-LM head.
        """
        counts = (tokens, examples, squared_lengths, predictions)
        tokens, examples, squares, targets = (np.asarray(count, np.float64) for count in counts)
        weighted = (
            self.token_parameters * tokens
            + self.example_parameters * examples
            + self.prediction_parameters * targets
        )
        return 6.0 * weighted + 12.0 * self.attention_width * squares


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
