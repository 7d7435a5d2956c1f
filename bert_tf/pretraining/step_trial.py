"""How fast a step of pretraining is in each of several ways, measured before the run starts.

How TensorFlow uses the cores is settled for a whole process when it first computes something, so
the ways are tried in processes of their own: this file is also their program.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.cpu.cores import divide_cores_among_parts
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.phases import PretrainingPhase
from bert_tf.training.devices.distribution import distributed_iterator
from bert_tf.training.devices.precision import Arithmetic, PrecisionPolicy
from bert_tf.training.optimizers.make import make_optimizer
from bert_tf.training.run.arithmetic import StepTrial
from bert_tf.training.step import TrainingStep

# Operations of a run for which a trial pays, about a minute of it: half an hour at 300 GFLOP/s.
_WORTH_A_TRIAL = 5e14
_WORTH_A_TRIAL_MINUTES = 30
_MAX_LAYERS = 3  # their step is compiled for the trial alone; more are faster in the same way
_MEASURED_SECONDS = 1.0
_MAX_MEASURED_STEPS = 20
_MOST_SECONDS = 3600.0  # that a trial may take, of a minute or so
_TIMED_OUT = 124  # as the command `timeout` says it


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepShape:
    """What a step is computed of.

    Attributes:
        rows: of a batch.
        length: tokens of a row, all of them filled.
        predictions: masked tokens of a row.
    """

    rows: int
    length: int
    predictions: int


def step_trial(
    config: TrainConfig,
    bert_config: BertConfig,
    phases: Sequence[PretrainingPhase],
    console: Console,
) -> StepTrial | None:
    """The trial for a run; None for one that is over before a trial would pay.

    Args:
        config: the `train` section.
        bert_config: the model's shape. Of its layers at most three are tried.
        phases: of the run; the one with most work is tried.
        console: warned of ways that fail.
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
    """Seconds of a step in each way; infinite where it fails, with a warning."""
    seconds: dict[Arithmetic, float] = {}
    for shards in sorted({way.shards for way in ways}):
        these = [way for way in ways if way.shards == shards]
        settings = {
            "bert": bert_config.fields(),
            "shape": dataclasses.asdict(shape),
            "shards": shards,
            "ways": [dataclasses.asdict(way.precision) for way in these],
        }
        done = run_trial("bert_tf.pretraining.step_trial", settings, {})
        found = [math.inf] * len(these)
        if done.returncode == 0:
            found = json.loads(done.stdout.splitlines()[-1])
        else:
            last = done.stderr.strip().rpartition("\n")[2]
            console.warn(f"a trial of the training step failed ({done.returncode}: {last})")
        seconds.update(zip(these, found, strict=True))
    return [seconds[way] for way in ways]


def run_trial(
    module: str, settings: Mapping[str, Any], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a trial in a process of its own, which is ended if it does not end by itself.

    Args:
        module: the program.
        settings: its argument, as JSON.
        environment: variables that it has beside those of this process.
    """
    command = [sys.executable, "-m", module, json.dumps(settings)]
    path = os.pathsep.join(filter(None, sys.path))
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path, **environment},
            timeout=_MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        late = f"it did not end within {_MOST_SECONDS:g} seconds"
        return subprocess.CompletedProcess(command, _TIMED_OUT, stdout="", stderr=late)


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


def steps_of(
    bert_config: BertConfig, arithmetic: Arithmetic, shape: StepShape, *, micro_batches: int = 1
) -> Callable[[int], None]:
    """What runs a number of steps on one batch, by AdamW as `train` has it by default.

    Args:
        bert_config: the model's shape.
        arithmetic: how the steps are computed.
        shape: of the batch.
        micro_batches: that the batch is computed in.
    """
    strategy = tf.distribute.get_strategy()
    model = BertPretrainingModel(bert_config, dtype=arithmetic.precision.policy)
    model.build_weights()
    optimizer = make_optimizer(
        build_section(TrainConfig, {"data": "-", "output": "-", "size": "tiny"}),
        num_hidden_layers=bert_config.num_hidden_layers,
    )
    optimizer.build(model.trainable_variables)
    step = TrainingStep(
        model=model,
        loss=PretrainingLoss(),
        optimizer=optimizer,
        strategy=strategy,
        arithmetic=arithmetic,
    )
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


def _seconds_of_a_step(run: Callable[[int], None]) -> float:
    run(1)  # traces and compiles
    start = time.perf_counter()
    run(1)
    first = time.perf_counter() - start
    if first >= _MEASURED_SECONDS:
        return first
    steps = min(int(_MEASURED_SECONDS / first) + 1, _MAX_MEASURED_STEPS)
    start = time.perf_counter()
    run(steps)
    return (time.perf_counter() - start) / steps


def _main() -> None:
    settings: dict[str, Any] = json.loads(sys.argv[1])
    shards = settings["shards"]
    if shards > 1:
        divide_cores_among_parts()
    bert_config, shape = BertConfig(**settings["bert"]), StepShape(**settings["shape"])
    seconds = [
        _seconds_of_a_step(
            steps_of(
                bert_config, Arithmetic(precision=PrecisionPolicy(**way), shards=shards), shape
            )
        )
        for way in settings["ways"]
    ]
    sys.stdout.write(json.dumps(seconds) + "\n")


if __name__ == "__main__":
    _main()
