"""Finds into how many micro-batches a batch has to be divided so that a step fits into memory.

The loss of a batch is divided by the weights of the whole batch, so what a model learns does not
depend on the number, but for dropout, whose masks each micro-batch draws of its own. A run keeps
the number that it began with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import RunnerFailed
from bert_tf.base.files import write_text_atomically
from bert_tf.base.json_files import read_if_sound, sealed
from bert_tf.base.wording import gigabytes, quantity
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.pretraining.memory_trial import peak_of_step
from bert_tf.pretraining.phases import PretrainingPhase
from bert_tf.pretraining.step_memory import StepMemory, step_memory
from bert_tf.pretraining.step_trial import StepShape, step_trial
from bert_tf.training.devices.memory import memory_for_steps
from bert_tf.training.devices.precision import Arithmetic, choose_precision, has_accelerator
from bert_tf.training.run.arithmetic import BatchRows, candidate_ways

ACCUMULATION_FILE = "accumulation.json"
_SURE = 0.5  # of the memory: an estimate within it needs no trial
_USABLE = 0.9  # of the memory: records, evaluations and checkpoints need some too


def settle_accumulation(
    config: TrainConfig,
    bert_config: BertConfig,
    phases: list[PretrainingPhase],
    console: Console,
) -> list[PretrainingPhase]:
    """The phases with their numbers of micro-batches, those of `auto` found or kept.

    To be called before TensorFlow takes a GPU's memory, which the trials need.

    Args:
        config: the `train` section.
        bert_config: the model's shape.
        phases: of the run.
        console: where the numbers are reported.

    Raises:
        RunnerFailed: not even single rows fit.
        UsageError: a batch cannot be divided among replicas.
    """
    if not any(phase.is_accumulation_open for phase in phases):
        return phases
    kept = read_if_sound(Path(config.output) / ACCUMULATION_FILE)
    if kept is not None and kept.get("batch_sizes") == _batch_sizes(phases):
        numbers = kept["accumulation_steps"]
        shown = ", ".join(map(str, numbers))
        console.info(f"gradient accumulation as this run began with: {shown} micro-batches")
    else:
        ways = _ways(config, bert_config, phases, console)
        numbers = [
            _Search(config, bert_config, phase, ways, console).fewest_that_fit()
            if phase.is_accumulation_open
            else phase.accumulation_steps
            for phase in phases
        ]
    return [
        dataclasses.replace(phase, accumulation_steps=number)
        for phase, number in zip(phases, numbers, strict=True)
    ]


def keep_accumulation(config: TrainConfig, phases: Sequence[PretrainingPhase]) -> None:
    """Writes the numbers into the run's directory, if any of them was to be found."""
    if not any(phase.is_accumulation_open for phase in phases):
        return
    path = Path(config.output) / ACCUMULATION_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = [phase.accumulation_steps for phase in phases]
    kept = {"batch_sizes": _batch_sizes(phases), "accumulation_steps": numbers}
    write_text_atomically(path, sealed(kept))


def _batch_sizes(phases: Sequence[PretrainingPhase]) -> list[int]:
    return [phase.batch_size for phase in phases]


def doubled(rows: int) -> Iterator[int]:
    """1 and then the divisors of a number of rows, each at least twice the one before."""
    number = 1
    while number <= rows:
        if rows % number == 0:
            yield number
            number *= 2
        else:
            number += 1


@dataclasses.dataclass(frozen=True)
class _Search:
    """The search for the number of a phase.

    Attributes:
        config, bert_config: of the run.
        phase: of it.
        ways: in which its steps may be computed.
        console: where trials are reported.
    """

    config: TrainConfig
    bert_config: BertConfig
    phase: PretrainingPhase
    ways: Sequence[Arithmetic]
    console: Console

    def fewest_that_fit(self) -> int:
        """From the estimate on, doubled until a trial step fits.

        Raises:
            RunnerFailed: none does.
            UsageError: the batch cannot be divided among replicas.
        """
        memory, replicas = memory_for_steps(), _replicas(self.config.strategy)
        self.phase.check_batch_size(replicas)
        for number in doubled(self.phase.batch_size // replicas):
            way, step = self._largest(number, replicas)
            if memory is not None and step.total > memory.available:
                continue
            words = quantity(number, "micro-batch")
            if memory is not None and step.total <= _SURE * memory.available:
                size = gigabytes(step.total)
                self._report(words, f"a step takes about {size} GB; {memory} are available")
                return number
            self.console.info(f"{self.phase.name}gradient accumulation: trying {words}")
            pool = None
            if memory is not None and not has_accelerator():
                pool = round((_USABLE * memory.available - step.libraries) / replicas)
            peak = self._peak(number, replicas, way, pool)
            if peak is not None:
                self._report(words, f"a trial step took {gigabytes(peak)} GB")
                return number
        available = "" if memory is None else f" ({memory} are available)"
        raise RunnerFailed(
            f"{self.phase.name}a step does not fit into the memory{available} even row by row; "
            "use shorter sequences (preprocess --max-seq-length) or a smaller model"
        )

    def _report(self, words: str, reason: str) -> None:
        self.console.info(f"{self.phase.name}gradient accumulation: {words} ({reason})")

    def _largest(self, number: int, replicas: int) -> tuple[Arithmetic, StepMemory]:
        """The way that takes most, so that whichever is the fastest fits, and what it takes."""
        steps = [
            step_memory(
                self.bert_config,
                self._shape(self.phase.batch_size),
                way.precision,
                micro_batches=number,
                replicas=replicas,
                local_replicas=1 if has_accelerator() else replicas,
                has_average=bool(self.config.ema_decay),
                is_accelerator=has_accelerator(),
            )
            for way in self.ways
        ]
        return max(zip(self.ways, steps, strict=True), key=lambda pair: pair[1].total)

    def _peak(self, number: int, replicas: int, way: Arithmetic, pool: int | None) -> int | None:
        """Of one replica's step, whose share of the memory is the pool."""
        shape = self._shape(self.phase.batch_size // replicas)
        rows = BatchRows(batch=shape.rows, micro_batches=number, is_filled_up=False)
        shards = 1 if way.precision.use_xla or replicas > 1 else rows.shards()
        return peak_of_step(
            self.bert_config,
            shape,
            dataclasses.replace(way, shards=shards),
            micro_batches=number,
            pool_bytes=pool,
        )

    def _shape(self, rows: int) -> StepShape:
        data = self.phase.data
        return StepShape(
            rows=rows, length=data.max_seq_length, predictions=data.max_predictions_per_seq
        )


def _ways(
    config: TrainConfig,
    bert_config: BertConfig,
    phases: Sequence[PretrainingPhase],
    console: Console,
) -> list[Arithmetic]:
    """The expected way to compute a step; all where the fastest is found by a trial."""
    precision = choose_precision(
        config.precision,
        config.xla,
        static_shapes=True,
        strategy=tf.distribute.get_strategy(),
        console=Console(quiet=True),
    )
    is_open = config.precision == config.xla == "auto" and config.strategy == "default"
    if is_open and not has_accelerator() and step_trial(config, bert_config, phases, console):
        return candidate_ways(shards=1)
    return [Arithmetic(precision=precision, shards=1)]


def _replicas(strategy: str) -> int:
    """Of a strategy that is not made yet, since TensorFlow would take all memory of GPUs for it."""
    if strategy != "mirrored":
        return 1
    devices = tf.config.list_physical_devices("GPU")
    if devices:
        return len(devices)
    processors = tf.config.list_physical_devices("CPU")
    parts = [tf.config.get_logical_device_configuration(each) for each in processors]
    return sum(len(each or [None]) for each in parts)
