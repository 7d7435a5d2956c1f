"""The timeline of a run: progress, learning rates, and when to log, evaluate and save."""

from __future__ import annotations

import bisect
import dataclasses
import itertools

import numpy as np

from bert_tf.training.plan.schedules import Schedule, make_schedule
from bert_tf.training.plan.settings import LoopSettings, PhaseSettings


class Timeline:
    """What follows from the settings, the step and the clock alone."""

    def __init__(self, settings: LoopSettings):
        self._settings = settings
        self._limit_seconds = 60 * settings.max_minutes
        self._ends = phase_ends([phase.steps for phase in settings.phases])
        self._spans = _spans(settings, self._ends)

    def phase_number(self, step: int) -> int:
        """The phase, from 0, that the step after `step` steps belongs to."""
        return phase_of(self._ends, step)

    def phase(self, step: int) -> PhaseSettings:
        """The settings of that phase."""
        return self._settings.phases[self.phase_number(step)]

    def progress(self, step: int, elapsed: float) -> float:
        """Fraction of the run that is done: of the steps, or of the time if that is more."""
        done = step / self._settings.total_steps
        return max(done, elapsed / self._limit_seconds) if self._limit_seconds else done

    def learning_rates(
        self, step: int, count: int, *, elapsed: float, seconds_per_step: float
    ) -> np.ndarray:
        """The rates of steps `step` … `step + count - 1` of one phase, float64 [count]."""
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
        """Whether to evaluate after `step` steps: by the period, and where a phase has ended."""
        every = self._settings.eval_every
        return bool(every and step % every == 0) or step in self._ends[:-1]

    def checkpoint_is_due(self, step: int, seconds_since_last: float) -> bool:
        """Whether the step or the time asks for a checkpoint."""
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
    """The number of steps after which each phase is over."""
    return list(itertools.accumulate(steps))


def phase_of(ends: list[int], step: int) -> int:
    """The phase, from 0, of the step after `step` steps; the last one at the end."""
    return min(bisect.bisect_right(ends, step), len(ends) - 1)


@dataclasses.dataclass(frozen=True)
class _Span:
    """Steps that share a schedule."""

    start: int
    end: int
    schedule: Schedule


def _spans(settings: LoopSettings, ends: list[int]) -> list[_Span]:
    """The span of each phase; phases without a peak of their own are in that of the one before."""
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
