"""The work of a step and the peak of the machine.

From both the log derives how well the machine is used (MFU).
"""

from __future__ import annotations

import time

import tensorflow as tf

from bert_tf.base.processor import CoreTimes
from bert_tf.cpu.cores import operations_at_once
from bert_tf.training.distribution import worker_count
from bert_tf.training.protocols import Batch

WORK_COUNTS = ("tokens", "examples", "squared_lengths", "predictions")

# `measure_matmul_peak` multiplies square matrices of this size, which are large enough to reach
# the peak, for this long.
_PEAK_SIZES = {"CPU": 1024, "GPU": 8192}
_PEAK_SECONDS = 0.3
BUSY = 0.1  # fraction of the cores; while other processes take more, no peak can be measured


def count_work(batch: Batch) -> dict[str, tf.Tensor]:
    """Count the arguments of `ModelFlops.flops` in a batch, padded or packed.

    Two sequences of 3 and 2 tokens, with 2 targets and 1, have 5 `tokens`, 2 `examples`, 9 + 4
    `squared_lengths` and 3 `predictions`, whether they are in two rows or packed into one.

    Args:
        batch: see `TrainingInputs.batches`.

    Returns:
        The counts named in `WORK_COUNTS`, float32 [] each.
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


def measure_matmul_peak(policy: str, strategy: tf.distribute.Strategy) -> float | None:
    """Measure the operations per second of large matrix products, on all devices, in less than 1 s.

    Assumes that all GPUs are alike, and that replicas on CPUs share one CPU.

    Args:
        policy: Keras dtype policy, whose compute dtype is measured.
        strategy: strategy of the run.

    Returns:
        None on TPUs, where single operations do not reach the peak, and on processors that other
        processes keep busy.
    """
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return None
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    size = _PEAK_SIZES[kind]
    dtype = {"mixed_bfloat16": tf.bfloat16, "mixed_float16": tf.float16}.get(policy, tf.float32)
    at_once = operations_at_once() if kind == "CPU" else 1
    matrices = [tf.fill([size, size], tf.cast(1.0 / size, dtype)) for _ in range(at_once)]

    # Autograph would look at all modules, and so import those that are imported on first use.
    @tf.function(autograph=False)
    def products(matrices: list[tf.Tensor]) -> tf.Tensor:
        return tf.stack([tf.reduce_max(matrix @ matrix) for matrix in matrices])

    products(matrices).numpy()  # traces, and wakes the device
    times = CoreTimes.read()
    start = time.monotonic()
    best = float("inf")
    while time.monotonic() - start < _PEAK_SECONDS:
        begin = time.monotonic()
        products(matrices).numpy()
        best = min(best, time.monotonic() - begin)
    if kind == "CPU" and times.taken_by_others() > BUSY:
        return None
    devices = strategy.num_replicas_in_sync if kind == "GPU" else worker_count(strategy)
    return devices * at_once * 2.0 * size**3 / best
