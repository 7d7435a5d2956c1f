"""What a pretraining run is going to do, settled before anything is trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import RunnerFailed
from bert_tf.base.wording import gigabytes, quantity
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.pretraining_inputs import PretrainingInputs
from bert_tf.pretraining.accumulation import settle_accumulation
from bert_tf.pretraining.phases import PretrainingPhase, pretraining_phases
from bert_tf.pretraining.step_memory import StepMemory, parameter_count, step_memory
from bert_tf.pretraining.step_trial import StepShape, step_trial
from bert_tf.training.devices.machine_memory import Memory
from bert_tf.training.devices.memory import is_out_of_memory, memory_for_steps
from bert_tf.training.devices.precision import Arithmetic, has_accelerator
from bert_tf.training.devices.strategy import make_strategy, worker_count
from bert_tf.training.run.arithmetic import settle_arithmetic


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingPlan:
    """A run that has not begun.

    Attributes:
        config: the `train` section.
        bert_config: the model's shape.
        strategy: what the steps are spread over.
        phases: one in a run on one data set.
        arithmetic: how steps are computed.
        inputs: the training batches of each phase.
    """

    config: TrainConfig
    bert_config: BertConfig
    strategy: tf.distribute.Strategy
    phases: list[PretrainingPhase]
    arithmetic: Arithmetic
    inputs: list[PretrainingInputs]

    def step_memory(self) -> tuple[PretrainingPhase, StepMemory]:
        """What a step takes in the phase where it takes most, and that phase."""
        steps = [self._phase_memory(*each) for each in zip(self.phases, self.inputs, strict=True)]
        return max(zip(self.phases, steps, strict=True), key=lambda pair: pair[1].total)

    def _phase_memory(self, phase: PretrainingPhase, inputs: PretrainingInputs) -> StepMemory:
        replicas = self.strategy.num_replicas_in_sync
        return step_memory(
            self.bert_config,
            StepShape(
                rows=inputs.rows,
                length=phase.data.max_seq_length,
                predictions=inputs.predictions,
            ),
            self.arithmetic.precision,
            micro_batches=phase.accumulation_steps,
            replicas=replicas,
            local_replicas=1 if has_accelerator() else replicas // worker_count(self.strategy),
            has_average=bool(self.config.ema_decay),
            is_accelerator=has_accelerator(),
        )

    def shortage(self) -> str | None:
        """What to say before the first step where it is not likely to fit; None where it is."""
        return _shortage(memory_for_steps(), *self.step_memory())

    def out_of_memory(self, error: tf.errors.OpError) -> RunnerFailed | None:
        """The error for a step that did not fit; None where the reason is another one."""
        if not is_out_of_memory(error):
            return None
        phase, step = self.step_memory()
        return RunnerFailed(
            f"{phase.name}a step did not fit into the memory; it takes about "
            f"{gigabytes(step.total)} GB: {_cure(phase)}"
        )


def plan_pretraining(
    config: TrainConfig,
    *,
    bert_config: BertConfig,
    data: Sequence[PretrainingData],
    console: Console,
    is_timed: bool = True,
) -> PretrainingPlan:
    """Settles micro-batches, devices and arithmetic, and opens the records.

    To be called before TensorFlow runs anything.

    Args:
        config: the `train` section.
        bert_config: the model's shape.
        data: the records of every phase; of a run without phases one.
        console: where the decisions are reported.
        is_timed: whether steps may be timed to find the fastest arithmetic.

    Raises:
        UsageError: the batch cannot be divided among replicas.
        InputError: damaged records.
        RunnerFailed: not even single rows fit into the memory.
    """
    phases = pretraining_phases(config, data)
    phases = settle_accumulation(config, bert_config, phases, console)
    strategy = make_strategy(config.strategy, config.tpu_address, console)
    for phase in phases:
        phase.check_batch_size(strategy.num_replicas_in_sync)
    arithmetic = settle_arithmetic(
        config,
        [phase.batch_rows for phase in phases],
        static_shapes=True,
        strategy=strategy,
        console=console,
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


def preview_pretraining(plan: PretrainingPlan, console: Console) -> dict[str, Any]:
    """Says what a run would do, without training.

    Returns:
        `steps`, `parameters`, `gradient_accumulation_steps` of each phase, the `arithmetic` and the
        `memory` in bytes: the parts of `step`, their `total`, and what is `available`, None where
        that is not known.
    """
    (phase, step), memory = plan.step_memory(), memory_for_steps()
    parameters = parameter_count(plan.bert_config)
    console.info(f"{parameters:,} parameters")
    available = "" if memory is None else f"; {memory} are available here"
    console.info(f"memory of a step: {step}{available}")
    shortage = _shortage(memory, phase, step)
    if shortage is not None:
        console.warn(shortage)
    console.info("dry run: nothing was written")
    return {
        "dry_run": True,
        "steps": plan.config.total_steps,
        "parameters": parameters,
        "gradient_accumulation_steps": [phase.accumulation_steps for phase in plan.phases],
        "arithmetic": str(plan.arithmetic),
        "memory": {
            "step": {name: round(size) for name, size in dataclasses.asdict(step).items()},
            "total": round(step.total),
            "available": None if memory is None else memory.available,
        },
    }


def _shortage(memory: Memory | None, phase: PretrainingPhase, step: StepMemory) -> str | None:
    if memory is None or step.total <= memory.available:
        return None
    return (
        f"{phase.name}a step takes about {gigabytes(step.total)} GB of memory, and "
        f"{gigabytes(memory.available)} GB are available here: {_cure(phase)}"
    )


def _cure(phase: PretrainingPhase) -> str:
    return (
        f"raise gradient_accumulation_steps (now {phase.accumulation_steps}), which computes the "
        f"same batch from fewer rows at a time, or lower batch_size (now {phase.batch_size})"
    )


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
