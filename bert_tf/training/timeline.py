"""The timeline of a run: settings, progress, learning rates, clock, and when to log and save."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bert_tf.config.registries import TENSORBOARD
from bert_tf.config.sections.loop import LoopSection
from bert_tf.models.model_flops import ModelFlops

Schedule = Callable[[np.ndarray], np.ndarray]
POLYNOMIAL_POWER = 0.5
_DECAYS: dict[str, Schedule] = {
    "linear": lambda done: np.clip(1.0 - done, 0.0, 1.0),
    "constant": lambda done: np.ones_like(done),
    "cosine": lambda done: 0.5 * (1.0 + np.cos(np.pi * np.clip(done, 0.0, 1.0))),
    "polynomial": lambda done: np.clip(1.0 - done, 0.0, 1.0) ** POLYNOMIAL_POWER,
}
_SETTINGS_OF_CONFIG = (
    *("schedule", "ema_decay", "early_stop_evals", "gradient_clip_norm", "seed", "log_every"),
    *("checkpoint_every", "checkpoint_minutes", "keep_checkpoints", "report_to"),
)
SECONDS_PER_CALL = 1.0
MAX_STEPS_PER_CALL = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseSettings:
    """A stretch of a run; where one ends, batches change their shape.

    Attributes:
        peak_learning_rate: after a warmup that starts with the phase; None continues the schedule
            of the phase before.
        relative_work: of a step, in any unit; an estimate until steps are timed.
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
        phases: one at least; the first has a peak learning rate.
        schedule: decay after warmup, see `make_schedule`.
        cooldown_fraction: fraction of the run of the trapezoidal schedule's decay.
        ema_decay: of the average of the weights that is evaluated and kept; 0 keeps none.
        early_stop_evals: evaluations without a better one that end the run; 0 never does.
        gradient_clip_norm: global; 0 does not clip.
        log_every: steps between train lines of metrics.jsonl.
        eval_every: steps between calls of `evaluate`; 0 only calls it at the end of a phase.
        checkpoint_every, checkpoint_minutes: steps or minutes; 0 leaves it to the other.
        max_minutes: training time after which a run of one phase ends; 0 sets no limit. The
            progress of the schedule is then max(step / total_steps, elapsed / max_minutes), so that
            the learning rate has decayed when the time is over; a warmup takes the same fraction
            of the time. Such a run cannot be repeated bit for bit.
        peak_flops: operations per second of the machine at its peak; None leaves MFU out.
        steps_per_call: steps inside one call of the compiled function; 0 for about a second.
        shown_metrics: of an evaluation, on the console; () for all.
        report_to, reported: trackers, and values of the config by key for them.
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
        return sum(phase.steps for phase in self.phases)

    @classmethod
    def from_config(cls, config: LoopSection, **others: Any) -> LoopSettings:
        """Takes the keys of every training section from `config`; `others` are fields."""
        return cls(
            cooldown_fraction=config.cooldown_proportion,
            reported=config.as_dict(),
            **{key: getattr(config, key) for key in _SETTINGS_OF_CONFIG},
            **others,
        )


class Timeline:
    def __init__(self, settings: LoopSettings):
        self._settings = settings
        self._limit_seconds = 60 * settings.max_minutes
        self._ends = phase_ends([phase.steps for phase in settings.phases])
        self._spans = _spans(settings, self._ends)

    def phase_number(self, step: int) -> int:
        return phase_of(self._ends, step)

    def phase(self, step: int) -> PhaseSettings:
        return self._settings.phases[self.phase_number(step)]

    def progress(self, step: int, elapsed: float) -> float:
        """Fraction of the run that is done: of the steps, or of the time if that is more."""
        done = step / self._settings.total_steps
        return max(done, elapsed / self._limit_seconds) if self._limit_seconds else done

    def learning_rates(
        self, step: int, count: int, *, elapsed: float, seconds_per_step: float
    ) -> np.ndarray:
        """Rates of steps `step` … `step + count - 1` of one phase, float64 [count]."""
        span = self._spans[self.phase_number(step)]
        numbers = np.arange(count)
        progress = (step - span.start + numbers) / (span.end - span.start)
        if self._limit_seconds:
            times = (elapsed + numbers * seconds_per_step) / self._limit_seconds
            progress = np.maximum(progress, times)
        return span.schedule(progress)

    def steps_to_boundary(self, step: int) -> int:
        """Steps until a log line, an evaluation, a checkpoint or the end of the phase."""
        settings = self._settings
        periods = (settings.log_every, settings.eval_every, settings.checkpoint_every)
        return min(
            self._ends[self.phase_number(step)] - step,
            *(period - step % period for period in periods if period),
        )

    def evaluation_is_due(self, step: int) -> bool:
        every = self._settings.eval_every
        return bool(every and step % every == 0) or step in self._ends[:-1]

    def checkpoint_is_due(self, step: int, seconds_since_last: float) -> bool:
        every, minutes = self._settings.checkpoint_every, self._settings.checkpoint_minutes
        return bool(every and step % every == 0) or bool(
            minutes and seconds_since_last >= 60 * minutes
        )

    def seconds_left(self, step: int, *, elapsed: float, seconds_per_step: float) -> float:
        """Seconds until the end, later phases estimated by their relative work."""
        first = phase_of(self._ends, max(0, step - 1))  # the one whose speed is known
        speed = seconds_per_step / self._settings.phases[first].relative_work
        starts = [0, *self._ends]
        left = sum(
            (end - max(step, start)) * speed * phase.relative_work
            for start, end, phase in zip(starts, self._ends, self._settings.phases, strict=False)
            if end > step
        )
        return min(left, self._limit_seconds - elapsed) if self._limit_seconds else left


def phase_ends(steps: list[int]) -> list[int]:
    return list(itertools.accumulate(steps))


def phase_of(ends: list[int], step: int) -> int:
    """Phase, from 0, of the step after `step` steps; the last one at the end."""
    return min(bisect.bisect_right(ends, step), len(ends) - 1)


@dataclasses.dataclass(frozen=True)
class _Span:
    start: int
    end: int
    schedule: Schedule


def _spans(settings: LoopSettings, ends: list[int]) -> list[_Span]:
    starts = [0, *ends[:-1]]
    start_phases = [
        n for n, phase in enumerate(settings.phases) if phase.peak_learning_rate is not None
    ]
    if start_phases[:1] != [0]:
        raise ValueError("the first phase needs a peak learning rate")
    spans: list[_Span] = []
    for first, following in zip(start_phases, [*start_phases[1:], len(ends)], strict=True):
        phase, start, end = settings.phases[first], starts[first], ends[following - 1]
        schedule = make_schedule(
            settings.schedule,
            peak=phase.peak_learning_rate or 0.0,
            warmup_fraction=min(1.0, phase.warmup_steps / (end - start)),
            cooldown_fraction=settings.cooldown_fraction,
        )
        spans += [_Span(start, end, schedule)] * (following - first)
    return spans


def make_schedule(
    name: str, *, peak: float, warmup_fraction: float, cooldown_fraction: float = 0.0
) -> Schedule:
    """Linear warmup to `peak`, then a decay: progress, float [n] in [0, 1], to float64 [n] rates.

    HuggingFace's schedules (`transformers/optimization.py`) as functions of step / total steps, for
    runs limited by steps and by time. Step 0 has rate 0 where there is a warmup.

    Args:
        name: "linear" to 0; "constant"; "cosine", half a period, to 0; "polynomial" to 0 with
            power 0.5, as NVIDIA's LAMB recipe for BERT; "trapezoidal", constant and then linear to
            0 (warmup, stable, decay).
        warmup_fraction: of the run.
        cooldown_fraction: of the run, of the trapezoidal schedule's decay; at most the rest after
            the warmup.
    """
    rest = max(1.0 - warmup_fraction, 1e-12)
    decay = _trapezoid(cooldown_fraction / rest) if name == "trapezoidal" else _DECAYS[name]

    def schedule(progress: np.ndarray) -> np.ndarray:
        progress = np.clip(np.asarray(progress, dtype=np.float64), 0.0, 1.0)
        decayed = decay((progress - warmup_fraction) / rest)
        if warmup_fraction == 0.0:
            return peak * decayed
        return peak * np.where(progress < warmup_fraction, progress / warmup_fraction, decayed)

    return schedule


def _trapezoid(cooldown: float) -> Schedule:
    if cooldown == 0.0:
        return _DECAYS["constant"]
    return lambda done: np.clip((1.0 - done) / min(cooldown, 1.0), 0.0, 1.0)


class StepTimer:
    """Measures a run's speed and keeps calls short enough to react to signals.

    `seconds_per_step` are 0 before the second call, since the first one compiles.
    """

    def __init__(self, elapsed_before: float, steps_per_call: int):
        self._start = time.monotonic() - elapsed_before
        self._fixed = steps_per_call
        self._calls = 0
        self._line_seconds = 0.0
        self._last_checkpoint = time.monotonic()
        self.seconds_per_step = 0.0

    def expect_compilation(self) -> None:
        self._calls = 0
        self.seconds_per_step = 0.0

    def elapsed(self) -> float:
        """Seconds of training so far, in this process and those before it."""
        return time.monotonic() - self._start

    def steps_of_next_call(self, limit: int) -> int:
        if self._fixed:
            return min(self._fixed, limit)
        if not self.seconds_per_step:
            return 1
        target = int(SECONDS_PER_CALL / self.seconds_per_step)
        return max(1, min(target, limit, MAX_STEPS_PER_CALL))

    @contextmanager
    def call(self, steps: int) -> Iterator[None]:
        start = time.monotonic()
        yield
        seconds = time.monotonic() - start
        self._line_seconds += seconds
        self._calls += 1
        if self._calls > 1:
            new = seconds / steps
            old = self.seconds_per_step or new
            self.seconds_per_step = 0.5 * old + 0.5 * new

    def seconds_since_line(self) -> float:
        seconds, self._line_seconds = self._line_seconds, 0.0
        return max(seconds, 1e-9)

    def seconds_since_checkpoint(self) -> float:
        return time.monotonic() - self._last_checkpoint

    def checkpoint_done(self) -> None:
        self._last_checkpoint = time.monotonic()
