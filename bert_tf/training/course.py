"""The course of a run: how far it is, its learning rates, and when something has to be done."""

from __future__ import annotations

import numpy as np

from bert_tf.training.schedules import make_schedule
from bert_tf.training.settings import LoopSettings


class Course:
    """What follows from the settings, the step and the clock alone."""

    def __init__(self, settings: LoopSettings):
        self._settings = settings
        self._limit_seconds = 60 * settings.max_minutes
        self._schedule = make_schedule(
            settings.schedule,
            peak=settings.peak_learning_rate,
            warmup_fraction=min(1.0, settings.warmup_steps / settings.total_steps),
            cooldown_fraction=settings.cooldown_fraction,
        )

    def progress(self, step: int, elapsed: float) -> float:
        """Share of the run that is done: of the steps, or of the time if that is more."""
        done = step / self._settings.total_steps
        return max(done, elapsed / self._limit_seconds) if self._limit_seconds else done

    def learning_rates(
        self, step: int, count: int, *, elapsed: float, seconds_per_step: float
    ) -> np.ndarray:
        """The rates of updates `step` … `step + count - 1`, float64 [count]."""
        numbers = np.arange(count)
        progress = (step + numbers) / self._settings.total_steps
        if self._limit_seconds:
            times = (elapsed + numbers * seconds_per_step) / self._limit_seconds
            progress = np.maximum(progress, times)
        return self._schedule(progress)

    def steps_to_boundary(self, step: int) -> int:
        """Updates until a log line, an evaluation, a checkpoint or the end."""
        settings = self._settings
        periods = (settings.log_every, settings.eval_every, settings.checkpoint_every)
        return min(
            settings.total_steps - step,
            *(period - step % period for period in periods if period),
        )

    def checkpoint_is_due(self, step: int, seconds_since_last: float) -> bool:
        """Whether the step or the time asks for a checkpoint."""
        every, minutes = self._settings.checkpoint_every, self._settings.checkpoint_minutes
        return bool(every and step % every == 0) or bool(
            minutes and seconds_since_last >= 60 * minutes
        )

    def seconds_left(self, step: int, *, elapsed: float, seconds_per_step: float) -> float:
        """Seconds until the end at the present speed."""
        left = (self._settings.total_steps - step) * seconds_per_step
        return min(left, self._limit_seconds - elapsed) if self._limit_seconds else left
