"""The numbers a training loop runs by."""

from __future__ import annotations

import dataclasses

from bert_tf.config.sections.training import LoopSection


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """How long, how fast and how carefully to train.

    Attributes:
        total_steps: updates in all.
        warmup_steps: updates of linear warm-up; in a run with `max_minutes` the same share of the
            time.
        peak_learning_rate: the learning rate after warm-up.
        schedule: decay after warm-up, see `bert_tf.training.schedules`.
        cooldown_fraction: share of the run of the trapezoidal schedule's decay.
        gradient_clip_norm: global norm that gradients are clipped to; 0 does not clip.
        accumulation_steps: parts that each batch is computed in, one after the other.
        seed: seed of dropout.
        log_every: updates between train lines of metrics.jsonl.
        eval_every: updates between calls of `evaluate`; 0 calls it only at the end.
        checkpoint_every: updates between checkpoints; 0 leaves it to `checkpoint_minutes`.
        checkpoint_minutes: minutes between checkpoints; 0 leaves it to `checkpoint_every`.
        keep_checkpoints: newest checkpoints kept.
        max_minutes: training time after which the run ends; 0 sets no limit. The progress of the
            schedule is then max(step / total_steps, elapsed / max_minutes), so that the learning
            rate has decayed when the time is over. Such a run depends on the machine's speed and
            cannot be repeated to the last bit.
        steps_per_call: updates inside one call of the compiled function; 0 lets the loop find a
            number that takes about a second.
    """

    total_steps: int
    warmup_steps: int = 0
    peak_learning_rate: float
    schedule: str = "linear"
    cooldown_fraction: float = 0.0
    gradient_clip_norm: float = 1.0
    accumulation_steps: int = 1
    seed: int = 1
    log_every: int = 10
    eval_every: int = 0
    checkpoint_every: int = 0
    checkpoint_minutes: float = 5.0
    keep_checkpoints: int = 3
    max_minutes: float = 0.0
    steps_per_call: int = 0

    @classmethod
    def from_config(
        cls,
        config: LoopSection,
        *,
        total_steps: int,
        warmup_steps: int,
        peak_learning_rate: float,
        eval_every: int = 0,
        max_minutes: float = 0.0,
        steps_per_call: int = 0,
    ) -> LoopSettings:
        """Takes what every training section has from `config`, the rest from the task."""
        return cls(
            total_steps=total_steps,
            warmup_steps=warmup_steps,
            peak_learning_rate=peak_learning_rate,
            schedule=config.schedule,
            cooldown_fraction=config.cooldown_proportion,
            gradient_clip_norm=config.gradient_clip_norm,
            accumulation_steps=config.gradient_accumulation_steps,
            seed=config.seed,
            log_every=config.log_every,
            eval_every=eval_every,
            checkpoint_every=config.checkpoint_every,
            checkpoint_minutes=config.checkpoint_minutes,
            keep_checkpoints=config.keep_checkpoints,
            max_minutes=max_minutes,
            steps_per_call=steps_per_call,
        )
