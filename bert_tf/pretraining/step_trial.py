"""Trials of a pretraining step: how long it takes, and how much memory.

Each trial is a process of its own, because TensorFlow's use of cores is fixed per process, it keeps
its memory, and an OOM kill leaves no message. This file is also the program of that process: it
takes settings as a JSON argument, and prints a line of JSON.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import RunnerFailed
from bert_tf.config.bert import BertConfig
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.cpu.cores import divide_cores_among_parts
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.phases import PretrainingPhase, row_flops
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy, StepTrial
from bert_tf.training.distribution import distributed_iterator
from bert_tf.training.memory import is_out_of_memory, peak_bytes
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.step import TrainingStep

# A trial takes about a minute. It pays for runs of this many operations (half an hour at
# 300 GFLOP/s) and, if their time is limited, of this many minutes.
_WORTH_A_TRIAL = 5e14
_WORTH_A_TRIAL_MINUTES = 30
# Layers of the model that is tried. More layers take longer to compile, and rank the same.
_MAX_LAYERS = 3
_MEASURED_SECONDS = 1.0  # time in which steps are timed, and their largest number
_MAX_MEASURED_STEPS = 20
_LEAST_ROWS = 4  # of a batch that is tried; two parts of two rows
_TIMEOUT_SECONDS = 3600.0  # for a trial that takes a minute or so
_LEARNING_RATE = 1e-4  # any; it does not change the time
# Value of oom_score_adj that makes the system end this process first if memory runs out.
_MOST_LIKELY_ENDED = "1000"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepShape:
    """The batch of a step, without padding.

    Attributes:
        rows: rows of the batch.
        length: tokens of a row.
        predictions: masked tokens of a row.
    """

    rows: int
    length: int
    predictions: int

    def part(self, model: BertConfig, most_flops: float) -> StepShape:
        """Return the shape with the rows of a step of `most_flops`; at least four rows, or all."""
        flops = row_flops(model, self.length, self.predictions)
        rows = int(most_flops / flops) // _LEAST_ROWS * _LEAST_ROWS
        return dataclasses.replace(self, rows=min(self.rows, max(_LEAST_ROWS, rows)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriedStep:
    """A measured step.

    Attributes:
        seconds: time of a step.
        start_seconds: time to build and compile it.
        count: number of steps that were timed.
        peak_bytes: peak memory of the process, or of its GPU.
    """

    seconds: float
    start_seconds: float
    count: int
    peak_bytes: int


def step_trial(
    config: TrainConfig,
    bert_config: BertConfig,
    phases: Sequence[PretrainingPhase],
    console: Console,
) -> StepTrial | None:
    """Return the trial that finds the fastest arithmetic; None if the run is too short for it.

    It tries a model of at most three layers, on the phase with the most work, and warns of
    candidates that fail.
    """
    work = {phase: phase.steps * phase.settings(bert_config).relative_work for phase in phases}
    minutes = config.max_minutes or _WORTH_A_TRIAL_MINUTES
    if sum(work.values()) < _WORTH_A_TRIAL or minutes < _WORTH_A_TRIAL_MINUTES:
        return None
    longest = max(phases, key=work.__getitem__)
    shape = StepShape(
        rows=longest.batch_size // longest.accumulation_steps,
        length=longest.data.max_seq_length,
        predictions=longest.data.max_predictions_per_seq,
    )
    layers = min(bert_config.num_hidden_layers, _MAX_LAYERS)
    tried = bert_config.replace(num_hidden_layers=layers)
    return lambda ways: measure_ways(ways, tried, shape, console)


def measure_ways(
    ways: Sequence[Arithmetic], bert_config: BertConfig, shape: StepShape, console: Console
) -> list[float]:
    """Return the seconds of a step for each candidate; infinite, with a warning, if it fails."""
    seconds = dict.fromkeys(ways, math.inf)
    for shards in sorted({way.shards for way in ways}):
        these = [way for way in ways if way.shards == shards]
        try:
            tried = try_steps(these, bert_config, shape)
        except RunnerFailed as error:
            console.warn(str(error))
            continue
        seconds |= {way: step.seconds for way, step in zip(these, tried, strict=True) if step}
    return [seconds[way] for way in ways]


def try_steps(
    ways: Sequence[Arithmetic],
    bert_config: BertConfig,
    shape: StepShape,
    *,
    micro_batches: int = 1,
    seconds: float = _MEASURED_SECONDS,
) -> list[TriedStep | None]:
    """Run some steps for each candidate, in a new process.

    Args:
        ways: candidates with the same `shards` and `cpu_kernels`.
        bert_config: sizes of the model.
        shape: the whole batch, on one device.
        micro_batches: parts of the batch that are computed one after the other.
        seconds: how long to time steps; at least one is timed, after the one that compiles.

    Returns:
        Measurements in the order of the candidates; None for those that do not fit into the memory.

    Raises:
        RunnerFailed: a trial fails for another reason, or does not end within an hour.
    """
    settings = {
        "bert": bert_config.fields(),
        "shape": dataclasses.asdict(shape),
        "shards": ways[0].shards,
        "cpu_kernels": ways[0].cpu_kernels,
        "ways": [dataclasses.asdict(way.precision) for way in ways],
        "micro_batches": micro_batches,
        "seconds": seconds,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bert_tf.pretraining.step_trial", json.dumps(settings)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise RunnerFailed(
            f"a trial of the training step failed (it did not end within {_TIMEOUT_SECONDS:g} "
            "seconds)"
        ) from None
    if done.returncode == -signal.SIGKILL:
        return [None] * len(ways)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise RunnerFailed(f"a trial of the training step failed ({done.returncode}: {last})")
    steps = json.loads(done.stdout.splitlines()[-1])
    return [None if each is None else TriedStep(**each) for each in steps]


def full_batch(shape: StepShape, vocab_size: int) -> dict[str, np.ndarray]:
    """Return random examples without padding, int32 except for the float32 weights."""
    generator = np.random.default_rng(0)
    rows = shape.rows
    length = shape.length
    predictions = shape.predictions
    return {
        "input_word_ids": generator.integers(0, vocab_size, (rows, length), np.int32),
        "input_mask": np.ones((rows, length), np.int32),
        "input_type_ids": np.repeat([np.arange(length) >= length // 2], rows, 0).astype(np.int32),
        "masked_lm_positions": np.sort(
            generator.integers(0, length, (rows, predictions), np.int32), axis=1
        ),
        "masked_lm_ids": generator.integers(0, vocab_size, (rows, predictions), np.int32),
        "masked_lm_weights": np.ones((rows, predictions), np.float32),
        "next_sentence_labels": generator.integers(0, 2, rows, np.int32),
    }


def training_step_of(bert_config: BertConfig, arithmetic: Arithmetic) -> TrainingStep:
    """Return a pretraining step on one device, by AdamW with its defaults."""
    model = BertPretrainingModel(bert_config, dtype=arithmetic.precision.policy)
    model.build_weights()
    optimizer = make_optimizer(
        build_section(TrainConfig, {"data": "-", "output": "-", "size": "tiny"}),
        num_hidden_layers=bert_config.num_hidden_layers,
    )
    optimizer.build(model.trainable_variables)
    return TrainingStep(
        model=model,
        loss=PretrainingLoss(),
        optimizer=optimizer,
        strategy=tf.distribute.get_strategy(),
        arithmetic=arithmetic,
    )


def steps_of(
    bert_config: BertConfig, arithmetic: Arithmetic, shape: StepShape, *, micro_batches: int = 1
) -> Callable[[int], None]:
    """Return a function that runs a number of steps on one batch."""
    strategy = tf.distribute.get_strategy()
    step = training_step_of(bert_config, arithmetic)
    batch = full_batch(shape, bert_config.vocab_size)
    batches = distributed_iterator(strategy, lambda: tf.data.Dataset.from_tensors(batch).repeat())
    calls = itertools.count()

    def run(steps: int) -> None:
        step.run(
            batches,
            first_step=0,
            learning_rates=np.full(steps, _LEARNING_RATE),
            accumulation_steps=micro_batches,
            untouched=next(calls) > 0,
        )

    return run


def _tried(settings: dict[str, Any], way: dict[str, Any]) -> TriedStep | None:
    """Measure one candidate in this process; None if it does not fit into the memory."""
    began = time.perf_counter()
    try:
        run = steps_of(
            BertConfig(**settings["bert"]),
            Arithmetic(
                precision=PrecisionPolicy(**way),
                shards=settings["shards"],
                cpu_kernels=settings["cpu_kernels"],
            ),
            StepShape(**settings["shape"]),
            micro_batches=settings["micro_batches"],
        )
        run(1)  # traces and compiles
        start = time.perf_counter()
        run(1)
        seconds = time.perf_counter() - start
        count = 1
        if seconds < settings["seconds"]:
            count = min(int(settings["seconds"] / seconds) + 1, _MAX_MEASURED_STEPS)
            again = time.perf_counter()
            run(count)
            seconds = (time.perf_counter() - again) / count
    except tf.errors.OpError as error:
        if is_out_of_memory(error):
            return None
        raise
    if tf.config.list_physical_devices("GPU"):
        peak = int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
    else:
        peak = peak_bytes()
    return TriedStep(seconds=seconds, start_seconds=start - began, count=count, peak_bytes=peak)


def _main() -> None:
    with suppress(OSError):  # not Linux
        Path("/proc/self/oom_score_adj").write_text(_MOST_LIKELY_ENDED, encoding="ascii")
    settings = json.loads(sys.argv[1])
    if settings["shards"] > 1:
        divide_cores_among_parts()
    tried = [_tried(settings, way) for way in settings["ways"]]
    steps = [None if each is None else dataclasses.asdict(each) for each in tried]
    sys.stdout.write(json.dumps(steps) + "\n")


if __name__ == "__main__":
    _main()
