"""The log of a run: lines collected from its steps, written to its files and to the console."""

from __future__ import annotations

from typing import Any

import numpy as np

from bert_tf.base.console import Advance, Console
from bert_tf.training.plan.settings import LoopSettings
from bert_tf.training.plan.step_timer import StepTimer
from bert_tf.training.plan.timeline import Timeline
from bert_tf.training.run.files import RunFiles
from bert_tf.training.run.log_lines import Line, LineBuilder, evaluation_text, progress_text


class ProgressLog:
    """Train and eval lines, the newest of which are kept.

    Args:
        settings: of the run.
        timeline: for the time left.
        files: receive the lines.
        console: shows them.

    Attributes:
        lines: the newest line of each split that has one.
    """

    def __init__(
        self, settings: LoopSettings, timeline: Timeline, files: RunFiles, console: Console
    ):
        self._settings = settings
        self._timeline = timeline
        self._files = files
        self._console = console
        self._builder = LineBuilder()
        self._unshown: Advance | None = None
        self.lines: dict[str, Line] = {}

    @property
    def has_unwritten(self) -> bool:
        """Whether steps were done since the last train line."""
        return bool(self._builder.pending)

    def state(self) -> dict[str, Any]:
        """What `restore` takes, JSON values: numbers not yet logged, and the newest lines."""
        return {"pending": self._builder.pending, "lines": self.lines}

    def restore(self, state: dict[str, Any]) -> None:
        """Resumes from a `state`; other keys in it are ignored."""
        self._builder, self.lines = LineBuilder(state["pending"]), state["lines"]

    def add(self, results: dict[str, np.ndarray]) -> None:
        """Takes the numbers of some steps, see `LineBuilder.add`."""
        self._builder.add(results)

    def write_training(self, step: int, timer: StepTimer) -> None:
        """Logs all steps since the last line, unless all of them overflowed."""
        elapsed = timer.elapsed()
        line = self._builder.train_line(
            step=step,
            elapsed=elapsed,
            seconds=timer.seconds_since_line(),
            peak_flops=self._settings.peak_flops,
        )
        if line is None:
            return
        self._write(line)
        seconds_left = self._timeline.seconds_left(
            step, elapsed=elapsed, seconds_per_step=timer.seconds_per_step
        )
        advance = Advance(
            progress_text(line, total_steps=self._settings.total_steps, seconds_left=seconds_left),
            self._timeline.progress(step, elapsed),
            says_time_left=True,
        )
        self._unshown = None if self._console.progress(advance) else advance

    def end_progress(self) -> None:
        """Shows the newest train line of this process, if the one shown last is older."""
        self._console.end_progress(self._unshown)

    def write_evaluation(self, step: int, timer: StepTimer, metrics: dict[str, float]) -> None:
        """Logs the metrics of an evaluation."""
        line = {"step": step, "split": "eval", "time": round(timer.elapsed(), 3), **metrics}
        self._write(line)
        self._console.info(evaluation_text(line, self._settings.shown_metrics))

    def _write(self, line: Line) -> None:
        self.lines[line["split"]] = line
        self._files.write_line(line)
