"""The state of a run, saved in checkpoints and restored from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.training.checkpoints import assign_values, read_values
from bert_tf.training.progress import ProgressLog
from bert_tf.training.protocols import TrainingInputs
from bert_tf.training.run_files import RunFiles


class RunState:
    """Variables, input position, log and notes of a run.

    Args:
        variables: by the names they have in checkpoints.
        inputs: give the position of a step.
        seed: of the run, for people.
        total_steps: of the run.
        log: whose unwritten numbers and newest lines are saved.
        files: hold the checkpoints.
        console: where the checkpoint that the run resumes from is reported.

    Attributes:
        notes: JSON values by name, kept for the caller.
        extended_from: steps after which `total_steps` was raised.
        evaluated_step: steps done before the last evaluation, None before the first.
    """

    def __init__(
        self,
        variables: dict[str, tf.Variable],
        *,
        inputs: TrainingInputs,
        seed: int,
        total_steps: int,
        log: ProgressLog,
        files: RunFiles,
        console: Console,
    ):
        self._variables = variables
        self._inputs = inputs
        self._seed = seed
        self._total_steps = total_steps
        self._log = log
        self._files = files
        self._console = console
        self._saved: tuple[int | None, ...] = ()
        self.notes: dict[str, Any] = {}
        self.extended_from: list[int] = []
        self.evaluated_step: int | None = None

    def save(self, step: int, elapsed: float) -> None:
        """Writes a checkpoint after `step` steps, unless the last one holds all there is.

        An evaluation and a line written after the last checkpoint count as something new.
        """
        if self._saved == self._progress(step):
            return
        self._saved = self._progress(step)
        self._files.save(
            step=step,
            tensors=read_values(self._variables) if self._files.writes else {},
            state=self._state(step, elapsed),
        )

    def save_aside(self, step: int, elapsed: float) -> Path | None:
        """Writes a checkpoint where no run resumes from; returns its path, None if not kept."""
        return self._files.save_aside(
            step=step, tensors=read_values(self._variables), state=self._state(step, elapsed)
        )

    def restore(self) -> tuple[int, float]:
        """Resumes from the newest checkpoint, if any; returns its step and elapsed seconds.

        Raises:
            UsageError: the checkpoint is of another model or other data, or has more steps.
            InputError: all checkpoints are damaged.
        """
        checkpoint = self._files.newest_checkpoint()
        if checkpoint is None:
            return 0, 0.0
        state = checkpoint.state
        if checkpoint.step > self._total_steps:
            raise UsageError(
                f"{checkpoint.path}: has {checkpoint.step} steps already, more than the "
                f"{self._total_steps} asked for; choose another --output"
            )
        position = self._inputs.position(checkpoint.step)
        if state["position"] != position:
            raise UsageError(
                f"{checkpoint.path}: saved at input position {state['position']}, which these data "
                f"reach as {position}: the data have changed since; start again with --overwrite"
            )
        assign_values(self._variables, checkpoint)
        self._log.restore(state)
        self.notes.update(state["notes"])
        self.evaluated_step = state.get("evaluated_step")
        self._saved = self._progress(checkpoint.step)
        self._console.info(f"resumed from {checkpoint.path}, step {checkpoint.step}")
        self.extended_from = state.get("extended_from", [])
        if state.get("total_steps", self._total_steps) < self._total_steps:
            self._extend(checkpoint.step, state["total_steps"])
        return checkpoint.step, float(state["elapsed_seconds"])

    def _extend(self, step: int, total_before: int) -> None:
        self.extended_from = [*self.extended_from, step]
        self._console.info(
            f"extended from {total_before:,} to {self._total_steps:,} steps: from here on the "
            f"learning rates of a run of {self._total_steps:,} steps; such a run from the start "
            "would end with another model, since its learning rate had not decayed before"
        )

    def _progress(self, step: int) -> tuple[int | None, ...]:
        """Grows whenever something happens that a checkpoint keeps."""
        return (step, self.evaluated_step, *(line["step"] for line in self._log.lines.values()))

    def _state(self, step: int, elapsed: float) -> dict[str, Any]:
        return {
            "elapsed_seconds": elapsed,
            "seed": self._seed,
            "position": self._inputs.position(step),
            **self._log.state(),
            "notes": self.notes,
            "evaluated_step": self.evaluated_step,
            "total_steps": self._total_steps,
            "extended_from": self.extended_from,
        }
