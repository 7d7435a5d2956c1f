"""Log lines and state of a run, saved in checkpoints."""

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
from bert_tf.base.wording import shown_duration
from bert_tf.training.metrics_log import Line
from bert_tf.training.protocols import TrainingInputs
from bert_tf.training.run_files import RunFiles, assign_values, read_values
from bert_tf.training.timeline import LoopSettings, StepTimer, Timeline


class LineBuilder:
    """Collects the numbers of steps, saved in checkpoints as `pending`, until a line is written."""

    def __init__(self, pending: dict[str, list[float]] | None = None):
        self.pending = pending or {}
        self._fastest = 0.0

    def add(self, results: dict[str, np.ndarray]) -> None:
        """Adds numbers of some steps, float [n], by name."""
        for name, values in results.items():
            self.pending.setdefault(name, []).extend(float(value) for value in values)

    def train_line(
        self, *, step: int, elapsed: float, seconds: float, peak_flops: float | None = None
    ) -> Line | None:
        """The line for all steps since the last one; None if all of them overflowed.

        Values are means over the steps, but the learning rate and the loss scale are the last
        ones. MFU is relative to `peak_flops` per second, or to the fastest rate so far.
        """
        pending, self.pending = self.pending, {}
        made = np.array(pending.pop("finite")) > 0
        if not made.any():
            return None
        examples, tokens = sum(pending.pop("examples")), sum(pending.pop("tokens"))
        flops = sum(pending.pop("flops", []))
        last = {name: pending.pop(name)[-1] for name in ("learning_rate", "loss_scale")}
        if last["loss_scale"] == 1.0:
            del last["loss_scale"]
        means = {
            name: math.fsum(np.array(values)[made]) / int(made.sum())
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


def progress_text(line: Line, *, total_steps: int, seconds_left: float) -> str:
    mfu = f"{line['mfu']:.0%} of peak  " if "mfu" in line else ""
    return (
        f"step {line['step']}/{total_steps}  loss {line['loss']:.4f}  "
        f"{line['examples_per_second']:,.1f} examples/s  "
        f"{line['tokens_per_second']:,.0f} tokens/s  {mfu}"
        f"{shown_duration(seconds_left)} left"
    )


def evaluation_text(line: Line, shown: Sequence[str] = ()) -> str:
    """An eval line for the console, with the metrics of `shown`, in this order; () for all."""
    names = shown or [name for name in line if name not in ("step", "split", "time")]
    numbers = [f"{name} {line[name]:.4f}" for name in names if name in line]
    return f"step {line['step']}, eval: " + "  ".join(numbers)


class ProgressLog:
    """Writes train and eval lines to files and console; `lines` has the newest of each split."""

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

    def state(self) -> dict[str, Any]:
        """JSON values for `restore`: numbers not yet logged, and the newest lines."""
        return {"pending": self._builder.pending, "lines": self.lines}

    def restore(self, state: dict[str, Any]) -> None:
        self._builder, self.lines = LineBuilder(state["pending"]), state["lines"]

    def add(self, results: dict[str, np.ndarray]) -> None:
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

    def end_training(self, step: int, timer: StepTimer) -> None:
        """Logs the rest of the steps, and ends their progress."""
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

    `extended_from` are the steps after which `total_steps` was raised.
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
        """Writes a checkpoint, unless there is no step, evaluation or line since the last one."""
        if self._saved == self._progress(step):
            return
        self._saved = self._progress(step)
        self.files.save(
            step=step,
            tensors=read_values(self.variables) if self.files.writes else {},
            state=self._state(step, elapsed),
        )

    def save_aside(self, step: int, elapsed: float) -> Path | None:
        """Writes a checkpoint that no run resumes from; returns its path, None if not kept."""
        return self.files.save_aside(
            step=step, tensors=read_values(self.variables), state=self._state(step, elapsed)
        )

    def restore(self) -> tuple[int, float]:
        """Resumes from the newest checkpoint, if any; returns its step and elapsed seconds.

        Raises UsageError for another model, other data, or more steps, InputError for damage.
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
