"""The numbers a training loop runs by."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.config.registries import TENSORBOARD
from bert_tf.config.sections.loop import LoopSection
from bert_tf.models.model_flops import ModelFlops


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseSettings:
    """A stretch of a run; where one ends, batches change their shape.

    Attributes:
        steps: of the phase.
        accumulation_steps: micro-batches that each batch is computed in, one after the other.
        peak_learning_rate: the learning rate after a warm-up that starts with the phase; None
            continues the schedule of the phase before.
        warmup_steps: of that warm-up.
        work: of the model on the phase's sequences; None where it is not known.
        relative_work: how much a step computes, in any unit; an estimate until steps are timed.
    """

    steps: int
    accumulation_steps: int = 1
    peak_learning_rate: float | None = None
    warmup_steps: int = 0
    work: ModelFlops | None = None
    relative_work: float = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """How long, how fast and how carefully to train.

    Attributes:
        phases: of the run, one at least; the first has a peak learning rate.
        schedule: decay after warm-up, see `bert_tf.training.plan.schedules`.
        cooldown_fraction: fraction of the run of the trapezoidal schedule's decay.
        ema_decay: of the average of the weights that is evaluated and kept; 0 keeps none.
        early_stop_evals: evaluations without a better one that end the run; 0 never does.
        gradient_clip_norm: global norm that gradients are clipped to; 0 does not clip.
        seed: seed of dropout.
        log_every: steps between train lines of metrics.jsonl.
        eval_every: steps between calls of `evaluate`; 0 calls it only at the end of a phase.
        checkpoint_every: steps between checkpoints; 0 leaves it to `checkpoint_minutes`.
        checkpoint_minutes: minutes between checkpoints; 0 leaves it to `checkpoint_every`.
        keep_checkpoints: newest checkpoints kept.
        max_minutes: training time after which a run of one phase ends; 0 sets no limit. The
            progress of the schedule is then max(step / total_steps, elapsed / max_minutes), so that
            the learning rate has decayed when the time is over; a warm-up takes the same fraction
            of the time. Such a run depends on the machine's speed and cannot be repeated bit
            for bit.
        peak_flops: operations per second of the machine at its peak; None leaves MFU out.
        steps_per_call: steps inside one call of the compiled function; 0 lets the loop find a
            number that takes about a second.
        shown_metrics: names of what the console shows of an evaluation; () for everything.
        report_to: names of the trackers that get the lines of metrics.jsonl.
        reported: values of the config by key, for trackers.
    """

    phases: tuple[PhaseSettings, ...]
    schedule: str = "linear"
    cooldown_fraction: float = 0.0
    ema_decay: float = 0.0
    early_stop_evals: int = 0
    gradient_clip_norm: float = 1.0
    seed: int = 1
    log_every: int = 10
    eval_every: int = 0
    checkpoint_every: int = 0
    checkpoint_minutes: float = 5.0
    keep_checkpoints: int = 3
    max_minutes: float = 0.0
    peak_flops: float | None = None
    steps_per_call: int = 0
    shown_metrics: tuple[str, ...] = ()
    report_to: tuple[str, ...] = (TENSORBOARD,)
    reported: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def total_steps(self) -> int:
        """Steps in all."""
        return sum(phase.steps for phase in self.phases)

    @classmethod
    def from_config(
        cls,
        config: LoopSection,
        *,
        phases: tuple[PhaseSettings, ...],
        eval_every: int = 0,
        max_minutes: float = 0.0,
        peak_flops: float | None = None,
        steps_per_call: int = 0,
        shown_metrics: tuple[str, ...] = (),
    ) -> LoopSettings:
        """Takes what every training section has from `config`, the rest from the task."""
        return cls(
            phases=phases,
            schedule=config.schedule,
            cooldown_fraction=config.cooldown_proportion,
            ema_decay=config.ema_decay,
            early_stop_evals=config.early_stop_evals,
            gradient_clip_norm=config.gradient_clip_norm,
            seed=config.seed,
            log_every=config.log_every,
            eval_every=eval_every,
            checkpoint_every=config.checkpoint_every,
            checkpoint_minutes=config.checkpoint_minutes,
            keep_checkpoints=config.keep_checkpoints,
            max_minutes=max_minutes,
            peak_flops=peak_flops,
            steps_per_call=steps_per_call,
            shown_metrics=shown_metrics,
            report_to=config.report_to,
            reported=config.as_dict(),
        )
