"""Trials of a pretraining step: how long it takes, and how much memory.

TensorFlow's use of cores is fixed per process, it keeps its memory, and an OOM kill leaves no
message: so trials are processes, whose program this file also is: settings as JSON in, a line out.
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

# Operations of a run for which a trial pays, about a minute of it: half an hour at 300 GFLOP/s.
_WORTH_A_TRIAL = 5e14
_WORTH_A_TRIAL_MINUTES = 30
_MAX_LAYERS = 3  # their step is compiled for the trial only; more are faster in the same way
_MEASURED_SECONDS = 1.0
_MAX_MEASURED_STEPS = 20
_LEAST_ROWS = 4
_TIMEOUT_SECONDS = 3600.0  # of a trial that takes a minute or so
_MOST_LIKELY_ENDED = "1000"  # of all processes, where the system ends one for want of memory


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepShape:
    """The batch of a step: `length` tokens in a row, all filled, `predictions` of them masked."""

    rows: int
    length: int
    predictions: int

    def part(self, model: BertConfig, most_flops: float) -> StepShape:
        """Returns the rows that a step of so many operations has, at least four, or all."""
        flops = row_flops(model, self.length, self.predictions)
        rows = int(most_flops / flops) // _LEAST_ROWS * _LEAST_ROWS
        return dataclasses.replace(self, rows=min(self.rows, max(_LEAST_ROWS, rows)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriedStep:
    """A measured step: `seconds` each, over `count` timed steps.

    `start_seconds` are for building and compiling; `peak_bytes` are of the process or its GPU.
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
    """Returns the trial that finds the fastest arithmetic; None for runs too short for it to pay.

    Tries at most three layers, on the phase with most work; warns of ways that fail.
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
    """Returns seconds of a step in each way; infinite where it fails, with a warning."""
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
    """Runs some steps in each way; None where they do not fit into the memory.

    Args:
        shape: of the whole batch, on one device.
        seconds: how long to time steps; at least one, after the one that compiles.

    Raises RunnerFailed if a trial fails for another reason, or does not end within an hour.
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
    found = json.loads(done.stdout.splitlines()[-1])
    return [None if each is None else TriedStep(**each) for each in found]


def full_batch(shape: StepShape, vocab_size: int) -> dict[str, np.ndarray]:
    """Random examples without padding, int32 but for the float32 weights."""
    generator = np.random.default_rng(0)
    rows, length, predictions = shape.rows, shape.length, shape.predictions
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
    """A pretraining step on one device, by AdamW with its defaults."""
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
    """Returns a function that runs a number of steps on one batch."""
    strategy = tf.distribute.get_strategy()
    step = training_step_of(bert_config, arithmetic)
    batch = full_batch(shape, bert_config.vocab_size)
    batches = distributed_iterator(strategy, lambda: tf.data.Dataset.from_tensors(batch).repeat())
    calls = itertools.count()

    def run(steps: int) -> None:
        step.run(
            batches,
            first_step=0,
            learning_rates=np.full(steps, 1e-4),
            accumulation_steps=micro_batches,
            untouched=next(calls) > 0,
        )

    return run


def _tried(settings: dict[str, Any], way: dict[str, Any]) -> TriedStep | None:
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
        seconds, count = time.perf_counter() - start, 1
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
    found = [None if each is None else dataclasses.asdict(each) for each in tried]
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    _main()
