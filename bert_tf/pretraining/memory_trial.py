"""The memory that steps of pretraining really take, in a process of their own.

A process that the system ends for want of memory cannot say so, and memory that TensorFlow has had
it keeps: so this file is also the program of a trial.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.base.errors import RunnerFailed
from bert_tf.config.bert import BertConfig
from bert_tf.cpu.cores import divide_cores_among_parts
from bert_tf.pretraining.step_trial import StepShape, run_trial, steps_of
from bert_tf.training.devices.machine_memory import peak_bytes
from bert_tf.training.devices.memory import is_out_of_memory
from bert_tf.training.devices.precision import Arithmetic, PrecisionPolicy

_STEPS = 2  # the first one compiles
_MOST_LIKELY_ENDED = "1000"  # of all processes, where the system ends one for want of memory


def peak_of_step(
    bert_config: BertConfig,
    shape: StepShape,
    arithmetic: Arithmetic,
    *,
    micro_batches: int,
    pool_bytes: int | None = None,
) -> int | None:
    """The most memory of a process that runs two steps; None where they do not fit.

    Args:
        bert_config: the model's shape.
        shape: of the whole batch, on one device.
        arithmetic: how the steps are computed.
        micro_batches: that the batch is computed in.
        pool_bytes: what TensorFlow may take for tensors on processors; None for as much as in this
            process.

    Returns:
        Bytes, on a GPU those of its memory.

    Raises:
        RunnerFailed: the trial failed for another reason.
    """
    settings = {
        "bert": bert_config.fields(),
        "shape": dataclasses.asdict(shape),
        "precision": dataclasses.asdict(arithmetic.precision),
        "shards": arithmetic.shards,
        "micro_batches": micro_batches,
    }
    environment: dict[str, str] = {}
    if pool_bytes is not None:
        environment["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
        environment["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(pool_bytes >> 20)
    done = run_trial("bert_tf.pretraining.memory_trial", settings, environment)
    if done.returncode == -signal.SIGKILL:
        return None
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise RunnerFailed(f"a trial of the training step failed ({done.returncode}: {last})")
    peak: int | None = json.loads(done.stdout.splitlines()[-1])
    return peak


def _peak() -> int:
    if tf.config.list_physical_devices("GPU"):
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
    return peak_bytes()


def _main() -> None:
    with suppress(OSError):  # not Linux
        Path("/proc/self/oom_score_adj").write_text(_MOST_LIKELY_ENDED, encoding="ascii")
    settings: dict[str, Any] = json.loads(sys.argv[1])
    shards = settings["shards"]
    if shards > 1:
        divide_cores_among_parts()
    arithmetic = Arithmetic(precision=PrecisionPolicy(**settings["precision"]), shards=shards)
    found = None
    try:
        run = steps_of(
            BertConfig(**settings["bert"]),
            arithmetic,
            StepShape(**settings["shape"]),
            micro_batches=settings["micro_batches"],
        )
        for _ in range(_STEPS):
            run(1)
        found = _peak()
    except tf.errors.OpError as error:
        if not is_out_of_memory(error):
            raise
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    _main()
