"""The clock of a run: elapsed seconds over all its processes, speed, steps of a call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS_PER_CALL = 1.0
MAX_STEPS_PER_CALL = 100


class StepTimer:
    """Measures a run's speed and keeps calls short enough to react to signals.

    Args:
        elapsed_before: seconds that earlier processes of the run trained for.
        steps_per_call: fixed number of steps per call; 0 aims at one call per second.

    Attributes:
        seconds_per_step: as measured by the last calls; 0 before the second call, since the first
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
        """The next call compiles again, so the speed measured so far no longer applies."""
        self._calls = 0
        self.seconds_per_step = 0.0

    def elapsed(self) -> float:
        """Seconds of training so far, in this process and those before it."""
        return time.monotonic() - self._start

    def steps_of_next_call(self, limit: int) -> int:
        """Steps for the next call, from 1 to `limit`."""
        if self._fixed:
            return min(self._fixed, limit)
        if not self.seconds_per_step:
            return 1
        target = int(SECONDS_PER_CALL / self.seconds_per_step)
        return max(1, min(target, limit, MAX_STEPS_PER_CALL))

    @contextmanager
    def call(self, steps: int) -> Iterator[None]:
        """Times a call of `steps` steps."""
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
        """Seconds spent in calls since this was asked last, for the speeds of a log line."""
        seconds, self._line_seconds = self._line_seconds, 0.0
        return max(seconds, 1e-9)

    def seconds_since_checkpoint(self) -> float:
        """Seconds since `checkpoint_done`, or since the start."""
        return time.monotonic() - self._last_checkpoint

    def checkpoint_done(self) -> None:
        """Starts the time to the next checkpoint."""
        self._last_checkpoint = time.monotonic()
