"""Log lines of a run, and its state as saved in checkpoints."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Advance, Console
from bert_tf.base.errors import UsageError
from bert_tf.base.wording import NO_RATES, Rates, shown_duration
from bert_tf.training.metrics_log import Line
from bert_tf.training.protocols import TrainingInputs
from bert_tf.training.run_files import RunFiles, assign_values, read_values
from bert_tf.training.timeline import LoopSettings, StepTimer, Timeline


class LineBuilder:
    """Collects the numbers of steps until a line is written.

    Attributes:
        pending: by name, one number per step since the last line. These are JSON values, saved in
            checkpoints so that the means of a line survive an interruption.
    """

    def __init__(self, pending: dict[str, list[float]] | None = None):
        self.pending = pending or {}
        self._fastest = 0.0  # highest operations per second so far

    def add(self, results: dict[str, np.ndarray]) -> None:
        """Add the numbers of some steps, float [n] by name; see `TrainingStep.run`."""
        for name, values in results.items():
            self.pending.setdefault(name, []).extend(float(value) for value in values)

    def train_line(
        self, *, step: int, elapsed: float, seconds: float, peak_flops: float | None = None
    ) -> Line | None:
        """Return the line of all steps since the last one; None if all of them overflowed.

        Losses and metrics are means over the steps that were applied; the learning rate and the
        loss scale are those of the last step.

        Args:
            step: steps done in all.
            elapsed: seconds since the start of the run.
            seconds: seconds that these steps took.
            peak_flops: operations per second of the machine at its peak, for MFU; None leaves it
                out. If steps are faster than that, MFU is relative to the fastest so far.
        """
        pending = self.pending
        self.pending = {}
        applied = np.array(pending.pop("finite")) > 0
        if not applied.any():
            return None
        examples = sum(pending.pop("examples"))
        tokens = sum(pending.pop("tokens"))
        flops = sum(pending.pop("flops", []))
        last = {name: pending.pop(name)[-1] for name in ("learning_rate", "loss_scale")}
        if last["loss_scale"] == 1.0:  # losses are not scaled
            del last["loss_scale"]
        means = {
            name: math.fsum(np.array(values)[applied]) / int(applied.sum())
            for name, values in pending.items()
        }
        line = {
            "step": step,
            "split": "train",
            "time": round(elapsed, 3),
            **means,
            **last,
            "examples_per_second": round(examples / seconds, 3),
            "tokens_per_second": round(tokens / seconds, 1),
        }
        if flops and peak_flops:
            self._fastest = max(self._fastest, peak_flops, flops / seconds)
            line["mfu"] = round(flops / seconds / self._fastest, 4)
        return line


def progress_text(
    line: Line, *, total_steps: int, seconds_left: float, rates: Rates = NO_RATES
) -> str:
    """Format a train line for the console.

    Args:
        line: as in metrics.jsonl.
        total_steps: steps of the run.
        seconds_left: estimated time until its end.
        rates: price and power of the machine.
    """
    costs = rates.shown(seconds_left)
    left = f"{shown_duration(seconds_left)} left" + (f" ({costs})" if costs else "")
    mfu = f"{line['mfu']:.0%} of peak  " if "mfu" in line else ""
    return (
        f"step {line['step']}/{total_steps}  loss {line['loss']:.4f}  "
        f"{line['examples_per_second']:,.1f} examples/s  "
        f"{line['tokens_per_second']:,.0f} tokens/s  {mfu}"
        f"{left}"
    )


def evaluation_text(line: Line, shown: Sequence[str] = ()) -> str:
    """Format an eval line for the console.

    Args:
        line: as in metrics.jsonl.
        shown: metrics to show, in this order, skipping those that the line lacks; () shows all.
    """
    names = shown or [name for name in line if name not in ("step", "split", "time")]
    numbers = [f"{name} {line[name]:.4f}" for name in names if name in line]
    return f"step {line['step']}, eval: " + "  ".join(numbers)


class ProgressLog:
    """Writes train and eval lines to metrics.jsonl, trackers and the console.

    Attributes:
        lines: the newest line of each split.
    """

    def __init__(
        self, settings: LoopSettings, timeline: Timeline, files: RunFiles, console: Console
    ):
        self._settings = settings
        self._timeline = timeline
        self._files = files
        self._console = console
        self._builder = LineBuilder()
        self._unshown: Advance | None = None  # the newest progress that the console has skipped
        self.lines: dict[str, Line] = {}

    def state(self) -> dict[str, Any]:
        """Return JSON values for `restore`: numbers not logged yet, and the newest lines."""
        return {"pending": self._builder.pending, "lines": self.lines}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a `state`; other keys in it are ignored."""
        self._builder = LineBuilder(state["pending"])
        self.lines = state["lines"]

    def add(self, results: dict[str, np.ndarray]) -> None:
        self._builder.add(results)

    def write_training(self, step: int, timer: StepTimer) -> None:
        """Log all steps since the last line, unless all of them overflowed."""
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
            progress_text(
                line,
                total_steps=self._settings.total_steps,
                seconds_left=seconds_left,
                rates=self._settings.rates,
            ),
            self._timeline.progress(step, elapsed),
            says_time_left=True,
        )
        self._unshown = None if self._console.progress(advance) else advance

    def end_training(self, step: int, timer: StepTimer) -> None:
        """Log the remaining steps, and end the progress on the console."""
        if self._builder.pending:
            self.write_training(step, timer)
        self._console.end_progress(self._unshown)

    def write_evaluation(self, step: int, timer: StepTimer, metrics: dict[str, float]) -> None:
        line = {"step": step, "split": "eval", "time": round(timer.elapsed(), 3), **metrics}
        self._write(line)
        self._console.info(evaluation_text(line, self._settings.shown_metrics))

    def _write(self, line: Line) -> None:
        self.lines[line["split"]] = line
        self._files.write_line(line)


@dataclasses.dataclass(kw_only=True, eq=False)
class RunState:
    """Variables, input position, log and notes of a run, saved in checkpoints.

    Attributes:
        variables: by their names in checkpoints.
        inputs: says where a step starts in the data.
        seed: seed of the run, only saved for people.
        total_steps: steps that the run shall have.
        log: its unwritten numbers and newest lines are saved.
        files: writes and reads checkpoints.
        console: receives which checkpoint was resumed.
        notes: JSON values by name, kept for the caller.
        extended_from: steps after which `total_steps` was raised.
        evaluated_step: steps done before the last evaluation; None before the first.
    """

    variables: dict[str, tf.Variable]
    inputs: TrainingInputs
    seed: int
    total_steps: int
    log: ProgressLog
    files: RunFiles
    console: Console
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)
    extended_from: list[int] = dataclasses.field(default_factory=list)
    evaluated_step: int | None = None
    _saved: tuple[int | None, ...] = ()

    def save(self, step: int, elapsed: float) -> None:
        """Write a checkpoint, unless there is no step, evaluation or line since the last one."""
        if self._saved == self._progress(step):
            return
        self._saved = self._progress(step)
        self.files.save(
            step=step,
            tensors=read_values(self.variables) if self.files.writes else {},
            state=self._state(step, elapsed),
        )

    def save_aside(self, step: int, elapsed: float) -> Path | None:
        """Write a checkpoint that no run resumes from; return its path, None if it was not kept."""
        return self.files.save_aside(
            step=step, tensors=read_values(self.variables), state=self._state(step, elapsed)
        )

    def restore(self) -> tuple[int, float]:
        """Resume from the newest checkpoint, if any.

        Returns:
            Steps done and elapsed seconds; (0, 0.0) without a checkpoint.

        Raises:
            UsageError: the checkpoint belongs to another model or other data, or has more steps
                than the run shall have.
            InputError: all checkpoints are damaged.
        """
        checkpoint = self.files.newest_checkpoint()
        if checkpoint is None:
            return 0, 0.0
        state = checkpoint.state
        if checkpoint.step > self.total_steps:
            raise UsageError(
                f"{checkpoint.path}: has {checkpoint.step} steps already, more than the "
                f"{self.total_steps} asked for; choose another --output"
            )
        position = self.inputs.position(checkpoint.step)
        if state["position"] != position:
            raise UsageError(
                f"{checkpoint.path}: saved at input position {state['position']}, which these data "
                f"reach as {position}: the data have changed since; start again with --overwrite"
            )
        assign_values(self.variables, checkpoint)
        self.log.restore(state)
        self.notes.update(state["notes"])
        self.evaluated_step = state.get("evaluated_step")
        self._saved = self._progress(checkpoint.step)
        self.console.info(f"resumed from {checkpoint.path}, step {checkpoint.step}")
        self.extended_from = state.get("extended_from", [])
        if state.get("total_steps", self.total_steps) < self.total_steps:
            self.extended_from = [*self.extended_from, checkpoint.step]
            self.console.info(
                f"extended from {state['total_steps']:,} to {self.total_steps:,} steps: from here "
                f"on, learning rates are those of a run of {self.total_steps:,} steps; a run of "
                "that length from the start would give another model, because its learning rate "
                "would not have decayed yet"
            )
        return checkpoint.step, float(state["elapsed_seconds"])

    def _progress(self, step: int) -> tuple[int | None, ...]:
        """Return numbers that change whenever a checkpoint would have something new to keep."""
        return (step, self.evaluated_step, *(line["step"] for line in self.log.lines.values()))

    def _state(self, step: int, elapsed: float) -> dict[str, Any]:
        return {
            "elapsed_seconds": elapsed,
            "seed": self.seed,
            "position": self.inputs.position(step),
            **self.log.state(),
            "notes": self.notes,
            "evaluated_step": self.evaluated_step,
            "total_steps": self.total_steps,
            "extended_from": self.extended_from,
        }
