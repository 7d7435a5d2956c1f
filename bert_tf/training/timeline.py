"""The timeline of a run: settings, inputs by phase, learning rates, clock, when to log and save."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.wording import NO_RATES, Rates
from bert_tf.config.registries import TENSORBOARD
from bert_tf.config.sections.loop import LoopSection
from bert_tf.models.model_flops import ModelFlops
from bert_tf.training.protocols import TrainingInputs

# Maps progress, float [n] in [0, 1], to learning rates, or to factors on one, float64 [n].
Schedule = Callable[[np.ndarray], np.ndarray]
POLYNOMIAL_POWER = 0.5  # of NVIDIA's LAMB recipe for BERT
_DECAYS: dict[str, Schedule] = {
    "linear": lambda done: np.clip(1.0 - done, 0.0, 1.0),
    "constant": lambda done: np.ones_like(done),
    "cosine": lambda done: 0.5 * (1.0 + np.cos(np.pi * np.clip(done, 0.0, 1.0))),
    "polynomial": lambda done: np.clip(1.0 - done, 0.0, 1.0) ** POLYNOMIAL_POWER,
}
# Fields of `LoopSettings` with the name of a config key or property.
_SETTINGS_OF_CONFIG = (
    "schedule",
    "ema_decay",
    "early_stop_evals",
    "gradient_clip_norm",
    "seed",
    "log_every",
    "checkpoint_every",
    "checkpoint_minutes",
    "keep_checkpoints",
    "report_to",
    "rates",
)
# A call of the compiled function cannot be interrupted, so it should take about a second, and have
# no more steps than this.
SECONDS_PER_CALL = 1.0
MAX_STEPS_PER_CALL = 100
# Weight of the newest call in the moving average of the speed.
_NEWEST_CALL = 0.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseSettings:
    """A stretch of a run; between two phases the shape of the batches changes.

    Attributes:
        steps: steps of the phase.
        accumulation_steps: micro-batches that each batch is divided into, computed one after the
            other.
        peak_learning_rate: learning rate after a warmup that starts with the phase; None continues
            the schedule of the phase before.
        warmup_steps: steps of that warmup.
        work: operations of the model on the sequences of the phase; None leaves MFU out.
        relative_work: work of a step in any unit, the same for all phases; estimates the time of
            later phases from that of timed steps.
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
        phases: at least one; the first has a peak learning rate.
        schedule: decay after warmup, see `make_schedule`.
        cooldown_fraction: fraction of the run of the trapezoidal schedule's decay.
        ema_decay: decay of the average of the weights that is evaluated and kept; 0 keeps none.
        early_stop_evals: evaluations without improvement that end the run; 0 never does.
        early_stop_loss: multiple of the lowest evaluation loss so far that ends the run when an
            evaluation exceeds it; 0 never does.
        gradient_clip_norm: global norm that gradients are clipped to; 0 does not clip.
        seed: seed of dropout.
        log_every: steps between train lines of metrics.jsonl.
        eval_every: steps between calls of `evaluate`; 0 only calls it at the end of a phase.
        checkpoint_every: steps between checkpoints; 0 leaves it to `checkpoint_minutes`.
        checkpoint_minutes: minutes between checkpoints; 0 leaves it to `checkpoint_every`.
        keep_checkpoints: number of newest checkpoints to keep.
        max_minutes: training time after which a run of one phase ends; 0 sets no limit. The
            progress of the schedule is then max(step / total_steps, elapsed / max_minutes), so that
            the learning rate has decayed when the time is over; a warmup takes the same fraction of
            the time. Such a run cannot be repeated bit for bit.
        peak_flops: operations per second of the machine at its peak; None leaves MFU out.
        steps_per_call: steps inside one call of the compiled function; 0 for about a second.
        shown_metrics: metrics of an evaluation to show on the console; () shows all.
        report_to: names of trackers that get the lines of metrics.jsonl.
        reported: values of the config by key, for trackers.
        rates: price and power of the machine, to show beside the time left.
    """

    phases: tuple[PhaseSettings, ...]
    schedule: str = "linear"
    cooldown_fraction: float = 0.0
    ema_decay: float = 0.0
    early_stop_evals: int = 0
    early_stop_loss: float = 0.0
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
    rates: Rates = NO_RATES

    @property
    def total_steps(self) -> int:
        return sum(phase.steps for phase in self.phases)

    @classmethod
    def from_config(cls, config: LoopSection, **others: Any) -> LoopSettings:
        """Return settings with the keys that every training section has.

        Args:
            config: config of the run.
            **others: values of the other fields, such as `phases`.
        """
        return cls(
            cooldown_fraction=config.cooldown_proportion,
            reported=config.as_dict(),
            **{key: getattr(config, key) for key in _SETTINGS_OF_CONFIG},
            **others,
        )


class Timeline:
    """Everything that depends only on the settings, the step and the elapsed time.

    `step` is the number of steps done, so it is also the number, from 0, of the next step.
    """

    def __init__(self, settings: LoopSettings):
        self._settings = settings
        self._limit_seconds = 60 * settings.max_minutes
        self._ends = phase_ends([phase.steps for phase in settings.phases])
        self._spans = _spans(settings, self._ends)

    def phase_number(self, step: int) -> int:
        """Return the phase, from 0, of the step after `step` steps."""
        return phase_of(self._ends, step)

    def phase(self, step: int) -> PhaseSettings:
        """Return the settings of that phase."""
        return self._settings.phases[self.phase_number(step)]

    def progress(self, step: int, elapsed: float) -> float:
        """Return the finished fraction of the run: of the steps, or of the time if that is more."""
        done = step / self._settings.total_steps
        return max(done, elapsed / self._limit_seconds) if self._limit_seconds else done

    def learning_rates(
        self, step: int, count: int, *, elapsed: float, seconds_per_step: float
    ) -> np.ndarray:
        """Return the rates of steps `step` … `step + count - 1`, which belong to one phase.

        Args:
            step: steps done.
            count: number of steps.
            elapsed: seconds of training so far.
            seconds_per_step: expected time of these steps, for runs limited by time.

        Returns:
            float64 [count].
        """
        span = self._spans[self.phase_number(step)]
        numbers = np.arange(count)
        progress = (step - span.start + numbers) / (span.end - span.start)
        if self._limit_seconds:
            times = (elapsed + numbers * seconds_per_step) / self._limit_seconds
            progress = np.maximum(progress, times)
        return span.schedule(progress)

    def steps_to_boundary(self, step: int) -> int:
        """Return the steps until a log line, evaluation, checkpoint or the end of the phase."""
        settings = self._settings
        periods = (settings.log_every, settings.eval_every, settings.checkpoint_every)
        return min(
            self._ends[self.phase_number(step)] - step,
            *(period - step % period for period in periods if period),
        )

    def evaluation_is_due(self, step: int) -> bool:
        """Return whether to evaluate after `step` steps: by the period, or at the end of a phase.

        The end of the last phase is not included; the loop evaluates there anyway.
        """
        every = self._settings.eval_every
        return bool(every and step % every == 0) or step in self._ends[:-1]

    def checkpoint_is_due(self, step: int, seconds_since_last: float) -> bool:
        """Return whether to save after `step` steps, by the steps or by the time."""
        every = self._settings.checkpoint_every
        minutes = self._settings.checkpoint_minutes
        by_steps = bool(every and step % every == 0)
        by_time = bool(minutes and seconds_since_last >= 60 * minutes)
        return by_steps or by_time

    def seconds_left(self, step: int, *, elapsed: float, seconds_per_step: float) -> float:
        """Return the seconds until the end, estimating later phases by their relative work."""
        first = phase_of(self._ends, max(0, step - 1))  # the phase whose speed is known
        speed = seconds_per_step / self._settings.phases[first].relative_work
        starts = [0, *self._ends]
        left = sum(
            (end - max(step, start)) * speed * phase.relative_work
            for start, end, phase in zip(starts, self._ends, self._settings.phases, strict=False)
            if end > step
        )
        return min(left, self._limit_seconds - elapsed) if self._limit_seconds else left


def phase_ends(steps: list[int]) -> list[int]:
    """Return the number of steps after which each phase is over."""
    return list(itertools.accumulate(steps))


def phase_of(ends: list[int], step: int) -> int:
    """Return the phase, from 0, of the step after `step` steps; the last phase at the end.

    Args:
        ends: result of `phase_ends`.
        step: steps done.
    """
    return min(bisect.bisect_right(ends, step), len(ends) - 1)


class PhasedInputs:
    """Joins the inputs of phases to one `TrainingInputs`.

    Args:
        inputs: inputs of each phase, whose steps are counted from 0.
        steps: steps of each phase.
    """

    def __init__(self, inputs: Sequence[TrainingInputs], steps: Sequence[int]):
        self._inputs = inputs
        self._ends = phase_ends(list(steps))
        self._starts = [0, *self._ends[:-1]]

    def batches(self, first_step: int) -> tf.data.Dataset:
        phase = phase_of(self._ends, first_step)
        return self._inputs[phase].batches(first_step - self._starts[phase])

    def position(self, first_step: int) -> dict[str, int]:
        """Return the phase, and where in its data a step starts."""
        phase = phase_of(self._ends, first_step)
        position = self._inputs[phase].position(first_step - self._starts[phase])
        return {"phase": phase, **position}


@dataclasses.dataclass(frozen=True)
class _Span:
    """Steps from `start` to before `end` that share a schedule."""

    start: int
    end: int
    schedule: Schedule


def _spans(settings: LoopSettings, ends: list[int]) -> list[_Span]:
    """Return the span of each phase; phases without their own peak share the one before."""
    starts = [0, *ends[:-1]]
    start_phases = [
        number
        for number, phase in enumerate(settings.phases)
        if phase.peak_learning_rate is not None
    ]
    if start_phases[:1] != [0]:
        raise ValueError("the first phase needs a peak learning rate")
    spans: list[_Span] = []
    for first, following in zip(start_phases, [*start_phases[1:], len(ends)], strict=True):
        phase = settings.phases[first]
        start = starts[first]
        end = ends[following - 1]
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
    """Return a linear warmup to `peak`, followed by a decay.

    These are HuggingFace's schedules (`transformers/optimization.py`) as functions of progress =
    step / total steps, for runs limited by steps and by time. Step 0 has rate 0 if there is a
    warmup.

    Args:
        name: "linear" to 0; "constant"; "cosine", half a period, to 0; "polynomial" to 0 with power
            0.5, as in NVIDIA's LAMB recipe for BERT; "trapezoidal", constant and then linear to 0
            (warmup, stable, decay).
        peak: learning rate at the end of the warmup.
        warmup_fraction: fraction of the run.
        cooldown_fraction: fraction of the run of the trapezoidal schedule's decay; at most the rest
            after the warmup is used.

    Returns:
        A function from progress, float [n] in [0, 1], to learning rates, float64 [n].
    """
    rest = max(1.0 - warmup_fraction, 1e-12)  # avoids a division by 0 if the warmup is everything
    decay = _trapezoid(cooldown_fraction / rest) if name == "trapezoidal" else _DECAYS[name]

    def schedule(progress: np.ndarray) -> np.ndarray:
        progress = np.clip(np.asarray(progress, dtype=np.float64), 0.0, 1.0)
        decayed = decay((progress - warmup_fraction) / rest)
        if warmup_fraction == 0.0:
            return peak * decayed
        return peak * np.where(progress < warmup_fraction, progress / warmup_fraction, decayed)

    return schedule


def _trapezoid(cooldown: float) -> Schedule:
    """Return 1, then a linear decay to 0 over the last `cooldown`, a fraction of the time."""
    if cooldown == 0.0:
        return _DECAYS["constant"]
    return lambda done: np.clip((1.0 - done) / min(cooldown, 1.0), 0.0, 1.0)


class StepTimer:
    """Measures a run's speed and keeps calls short enough to react to signals.

    Args:
        elapsed_before: seconds of training in earlier processes of the run.
        steps_per_call: fixed number of steps per call; 0 aims at one call per second.

    Attributes:
        seconds_per_step: moving average over the calls. 0 before the second call, because the first
            one compiles.
    """

    def __init__(self, elapsed_before: float, steps_per_call: int):
        self._start = time.monotonic() - elapsed_before
        self._fixed = steps_per_call
        self._calls = 0
        self._line_seconds = 0.0
        self._last_checkpoint = time.monotonic()
        self.seconds_per_step = 0.0

    def expect_compilation(self) -> None:
        """Forget the speed, because the next call compiles and the following ones do other work."""
        self._calls = 0
        self.seconds_per_step = 0.0

    def elapsed(self) -> float:
        """Return the seconds of training so far, in this process and those before it."""
        return time.monotonic() - self._start

    def steps_of_next_call(self, limit: int) -> int:
        """Return the steps of the next call, from 1 to `limit`."""
        if self._fixed:
            return min(self._fixed, limit)
        if not self.seconds_per_step:
            return 1
        target = int(SECONDS_PER_CALL / self.seconds_per_step)
        return max(1, min(target, limit, MAX_STEPS_PER_CALL))

    @contextmanager
    def call(self, steps: int) -> Iterator[None]:
        """Time a call of `steps` steps."""
        start = time.monotonic()
        yield
        seconds = time.monotonic() - start
        self._line_seconds += seconds
        self._calls += 1
        if self._calls > 1:
            new = seconds / steps
            old = self.seconds_per_step or new
            self.seconds_per_step = (1.0 - _NEWEST_CALL) * old + _NEWEST_CALL * new

    def seconds_since_line(self) -> float:
        """Return the seconds spent in calls since the last log line, which this resets."""
        seconds = self._line_seconds
        self._line_seconds = 0.0
        return max(seconds, 1e-9)  # callers divide by it

    def seconds_since_checkpoint(self) -> float:
        """Return the seconds since `checkpoint_done`, or since the start."""
        return time.monotonic() - self._last_checkpoint

    def checkpoint_done(self) -> None:
        """Restart the time until the next checkpoint."""
        self._last_checkpoint = time.monotonic()
