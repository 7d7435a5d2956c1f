"""The plan of a pretraining run, made before anything is trained."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.wording import gigabytes, quantity, shown_duration
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.pretraining_inputs import PretrainingInputs
from bert_tf.pretraining.phases import PretrainingPhase, common_pair_task, pretraining_phases
from bert_tf.pretraining.step_trial import StepShape, step_trial, try_steps
from bert_tf.training.arithmetic import Arithmetic, has_accelerator, settle_arithmetic
from bert_tf.training.distribution import is_chief, make_strategy, worker_count
from bert_tf.training.memory import Memory, memory_for_steps

# Operations of a step whose memory is measured, which takes some seconds on two cores. Larger
# batches are extrapolated.
_TRIAL_FLOPS = 5e11
_TRIAL_MICRO_BATCHES = 2  # more need no more memory
_FLOAT_BYTES = 4
_TIMED_SECONDS = 0.5  # in which steps are timed, after the one that compiles


class MeasuredRun(NamedTuple):
    """Time and memory of steps, by trials.

    Attributes:
        peak_bytes: peak memory of a step.
        seconds: time of a step, or of all steps.
    """

    peak_bytes: int
    seconds: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingPlan:
    """A run that has not begun.

    Attributes:
        config: config of the run.
        bert_config: sizes of the model.
        strategy: strategy that steps are distributed by.
        phases: phases of the run.
        arithmetic: how steps are computed.
        inputs: training batches of each phase.
    """

    config: TrainConfig
    bert_config: BertConfig
    strategy: tf.distribute.Strategy
    phases: list[PretrainingPhase]
    arithmetic: Arithmetic
    inputs: list[PretrainingInputs]

    @functools.cached_property
    def pair_task(self) -> str:
        """Pair task of all phases; UsageError if their records have different ones."""
        return common_pair_task(self.phases)

    @functools.cached_property
    def writes(self) -> bool:
        """Whether this process writes the run."""
        return is_chief(self.strategy)

    def measure(self) -> MeasuredRun | None:
        """Measure the peak memory of a step of the largest phase, and the time of all steps.

        Large batches are extrapolated from few rows.

        Returns:
            None if a trial does not fit into the memory.
        """
        largest = 0
        seconds = 0.0
        for phase, inputs in zip(self.phases, self.inputs, strict=True):
            step = self._measure_step(phase, inputs)
            if step is None:
                return None
            largest = max(largest, step.peak_bytes)
            seconds += phase.steps * step.seconds
        if self.config.max_minutes:
            seconds = min(seconds, 60 * self.config.max_minutes)
        return MeasuredRun(peak_bytes=largest, seconds=seconds)

    def _measure_step(
        self, phase: PretrainingPhase, inputs: PretrainingInputs
    ) -> MeasuredRun | None:
        """Measure a step of a phase; None if a trial does not fit into the memory."""
        replicas = self.strategy.num_replicas_in_sync
        micro_batches = min(phase.accumulation_steps, _TRIAL_MICRO_BATCHES)
        whole = StepShape(
            rows=inputs.rows // (phase.accumulation_steps * replicas),
            length=phase.data.max_seq_length,
            predictions=inputs.predictions,
        )
        # A large batch is extrapolated from two smaller ones: memory grows linearly with rows.
        few = whole.part(self.bert_config, _TRIAL_FLOPS).rows
        sizes = [whole.rows] if whole.rows <= 2 * few else [few, 2 * few]
        peaks = []
        times = []
        for rows in sizes:
            arithmetic = self.arithmetic
            if rows % arithmetic.shards:
                arithmetic = dataclasses.replace(arithmetic, shards=1)
            (tried,) = try_steps(
                [arithmetic],
                self.bert_config,
                dataclasses.replace(whole, rows=rows * micro_batches),
                micro_batches=micro_batches,
                seconds=_TIMED_SECONDS,
            )
            if tried is None:
                return None
            peaks.append(tried.peak_bytes)
            times.append(tried.seconds / micro_batches)
        of_a_row = (peaks[-1] - peaks[0]) / max(sizes[-1] - sizes[0], 1)
        peak = peaks[-1] + of_a_row * (whole.rows - sizes[-1])
        if self.config.ema_decay:
            peak += _FLOAT_BYTES * parameter_count(self.bert_config)
        # Replicas on a CPU share its memory; each GPU has its own.
        sharing = 1 if has_accelerator() else replicas // worker_count(self.strategy)
        # A fixed part is the same for any number of rows.
        time_of_a_row = max((times[-1] - times[0]) / max(sizes[-1] - sizes[0], 1), 0.0)
        seconds = times[-1] + time_of_a_row * (whole.rows - sizes[-1])
        return MeasuredRun(
            peak_bytes=round(peak * sharing), seconds=seconds * phase.accumulation_steps
        )

    @property
    def cure(self) -> str:
        """Advice for steps that do not fit into the memory."""
        phase = max(
            self.phases,
            key=lambda each: each.batch_size // each.accumulation_steps * each.data.max_seq_length,
        )
        return (
            f"{phase.name}raise gradient_accumulation_steps (now {phase.accumulation_steps}), "
            "which computes the same batch from fewer rows at a time, or lower batch_size "
            f"(now {phase.batch_size})"
        )


def plan_pretraining(
    config: TrainConfig,
    *,
    bert_config: BertConfig,
    data: Sequence[PretrainingData],
    console: Console,
    is_timed: bool = True,
) -> PretrainingPlan:
    """Choose devices and arithmetic, and open the records. Call it before TensorFlow runs.

    Args:
        config: config of the run.
        bert_config: sizes of the model.
        data: description of the records of each phase; one item without phases.
        console: receives the decisions.
        is_timed: whether steps may be timed to find the fastest arithmetic.

    Raises:
        UsageError: the batch cannot be divided among replicas.
        InputError: records are damaged.
    """
    phases = pretraining_phases(config, data)
    strategy = make_strategy(config.strategy, config.tpu_address, console)
    for phase in phases:
        phase.check_batch_size(strategy.num_replicas_in_sync)
    arithmetic = settle_arithmetic(
        config,
        [phase.batch_rows for phase in phases],
        strategy=strategy,
        console=console,
        model=bert_config,
        trial=step_trial(config, bert_config, phases, console) if is_timed else None,
    )
    inputs = [phase.open_inputs(config, strategy, shards=arithmetic.shards) for phase in phases]
    for phase, opened in zip(phases, inputs, strict=True):
        _log_input(phase, opened, console)
    return PretrainingPlan(
        config=config,
        bert_config=bert_config,
        strategy=strategy,
        phases=phases,
        arithmetic=arithmetic,
        inputs=inputs,
    )


def preview_pretraining(
    config: TrainConfig,
    *,
    bert_config: BertConfig,
    data: Sequence[PretrainingData],
    console: Console,
) -> dict[str, Any]:
    """Report the plan of a run without training; arguments are those of `plan_pretraining`.

    Returns:
        `steps`; `parameters`; `gradient_accumulation_steps` of each phase; `arithmetic`; and
        `memory` in bytes: the `total` of a step at its peak (None on TPUs, or if it does not fit),
        and the `available` memory (None if unknown); `seconds`, the estimated time of all steps
        (None like the memory); and with rates of the machine their `cost` and `kwh`.
    """
    for device in tf.config.list_physical_devices("GPU"):
        # Trials in other processes need the memory that TensorFlow would take here.
        tf.config.experimental.set_memory_growth(device, True)
    plan = plan_pretraining(
        config, bert_config=bert_config, data=data, console=console, is_timed=False
    )
    parameters = parameter_count(bert_config)
    console.info(f"{parameters:,} parameters")
    measured = None
    memory = memory_for_steps()
    if config.strategy != "tpu":  # trials are processes, and only one may use the TPU
        measured = _measured_run(plan, memory, console)
    seconds = None if measured is None else measured.seconds
    console.info("dry run: nothing was written")
    return {
        "dry_run": True,
        "steps": config.total_steps,
        "parameters": parameters,
        "gradient_accumulation_steps": [phase.accumulation_steps for phase in plan.phases],
        "arithmetic": str(plan.arithmetic),
        "memory": {
            "total": None if measured is None else measured.peak_bytes,
            "available": None if memory is None else memory.available,
        },
        "seconds": seconds,
        **config.rates.figures(seconds or 0.0),
    }


def _measured_run(
    plan: PretrainingPlan, memory: Memory | None, console: Console
) -> MeasuredRun | None:
    """Measure and report memory and time of the steps; None if one does not fit."""
    with console.waiting("train: measuring the memory of a step"):
        measured = plan.measure()
    available = "" if memory is None else f"; {memory} are available here"
    if measured is None:
        console.warn(f"a trial step did not fit into the memory{available}: {plan.cure}")
        return None
    needed = measured.peak_bytes
    console.info(f"memory of a step: {gigabytes(needed)} GB, measured by trials{available}")
    if memory is not None and needed > memory.available:
        console.warn(
            f"a step takes about {gigabytes(needed)} GB of memory, and "
            f"{gigabytes(memory.available)} GB are available here: {plan.cure}"
        )
    costs = plan.config.rates.shown(measured.seconds)
    console.info(
        f"time here: about {shown_duration(measured.seconds)} for "
        f"{quantity(plan.config.total_steps, 'step')}, without evaluations"
        + (f" ({costs})" if costs else "")
    )
    return measured


def parameter_count(model: BertConfig) -> int:
    """Return the number of weights, pooler and pretraining heads included."""
    hidden = model.hidden_size
    dense = hidden * hidden + hidden
    masked_lm = dense + 2 * hidden + model.vocab_size
    return model.encoder_parameters + dense + masked_lm + 2 * hidden + 2


def _log_input(phase: PretrainingPhase, inputs: PretrainingInputs, console: Console) -> None:
    console.info(
        f"{phase.name}{quantity(inputs.record_count, 'training record')}; "
        f"{quantity(phase.steps, 'step')} of {phase.batch_size:,} make "
        f"{phase.steps * phase.batch_size / inputs.record_count:.2f} epochs"
    )
    if inputs.packing is not None:
        console.info(
            f"{phase.name}packing: {inputs.packing.sequences_per_row:.2f} sequences per row, "
            f"{inputs.packing.packing_efficiency:.1%} of the places filled, "
            f"{quantity(inputs.rows, 'row')} per step"
        )
