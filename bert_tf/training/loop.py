"""The training loop that every task uses: updates, log lines, evaluations, checkpoints, resume.

    loop = TrainingLoop(
        model=model,                      # built, made inside strategy.scope()
        loss=PretrainingLoss(),           # bert_tf.training.protocols.TaskLoss
        optimizer=make_optimizer(config, num_hidden_layers=2), # made inside strategy.scope()
        inputs=inputs,                    # bert_tf.training.protocols.TrainingInputs
        strategy=strategy,                # bert_tf.training.strategy.make_strategy
        settings=LoopSettings(phases=(PhaseSettings(steps=1000, peak_learning_rate=1e-4),)),
        run_directory=Path("runs/first"),
        console=Console(),
        evaluate=lambda step, notes: {"loss": 1.0},
    )
    result = loop.run()

`run` goes on from the newest checkpoint in `run_directory`. On one device in float32 the losses
after that equal those of a run that was never interrupted, to the last bit.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.config.console import Console
from bert_tf.config.errors import InputError, StoppedEarly, UsageError
from bert_tf.training.agreement import Agreement
from bert_tf.training.averaging import WeightAverages
from bert_tf.training.checkpoints import assign_values, read_values, variables_by_name
from bert_tf.training.course import Course
from bert_tf.training.distribution import distributed_iterator
from bert_tf.training.early_stop import EarlyStop
from bert_tf.training.log_lines import Line, LineBuilder, evaluation_text, progress_text
from bert_tf.training.pace import Pace
from bert_tf.training.protocols import Batch, TaskLoss, TrainingInputs
from bert_tf.training.run_files import RunFiles
from bert_tf.training.settings import LoopSettings
from bert_tf.training.step import TrainingStep
from bert_tf.training.step_optimizer import StepOptimizer
from bert_tf.training.stop_signals import on_stop_signal
from bert_tf.training.strategy import is_chief, worker_count
from bert_tf.training.work import WORK_COUNTS

Evaluate = Callable[[int, dict[str, Any]], dict[str, float]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        step: updates made in all.
        seconds: training time in all, evaluations and checkpoints included.
        resumed_from: step of the checkpoint this process went on from; 0 for a fresh start.
        train: the last train line of metrics.jsonl.
        eval: the last eval line, None without evaluation.
        stopped_early: why the run ended before its last step; None if it did not.
        notes: what `evaluate` kept in its notes.
    """

    step: int
    seconds: float
    resumed_from: int
    train: dict[str, Any]
    eval: dict[str, Any] | None
    stopped_early: str | None
    notes: dict[str, Any]


class TrainingLoop:
    """Trains a model under any strategy; see the module's text for an example.

    Args:
        model: a built Keras model.
        loss: the task's loss and metrics.
        optimizer: of `make_optimizer`; the loop builds it and sets its learning rate.
        inputs: training batches, addressed by the number of the update.
        strategy: model and optimizer were made inside its scope.
        settings: how long, how fast, how carefully.
        run_directory: gets `metrics.jsonl`, `tensorboard/` and `checkpoints/`; None writes nothing.
        console: progress and warnings.
        evaluate: called with (updates made, notes) every `eval_every` updates and at the end of a
            phase, on every worker, while the model has its averaged weights if any; what it returns
            is logged as an eval line ({} logs nothing). `notes` is a dict of JSON values that is
            saved in checkpoints and restored with them: the place to remember the best result so
            far, whose step `early_stop_evals` takes from `notes["best"]["step"]`.
        use_xla: compile the step with XLA.
        scale_loss: dynamic loss scaling, for float16.
    """

    def __init__(
        self,
        *,
        model: Any,
        loss: TaskLoss,
        optimizer: StepOptimizer,
        inputs: TrainingInputs,
        strategy: tf.distribute.Strategy,
        settings: LoopSettings,
        run_directory: Path | None,
        console: Console,
        evaluate: Evaluate | None = None,
        use_xla: bool = False,
        scale_loss: bool = False,
    ):
        self._inputs = inputs
        self._strategy = strategy
        self._settings = settings
        self._console = console
        self._evaluate = evaluate
        self._scale_loss = scale_loss
        self._early_stop = EarlyStop(settings.early_stop_evals)
        self._averages = None
        if settings.ema_decay:
            self._averages = WeightAverages(
                model.trainable_variables, decay=settings.ema_decay, strategy=strategy
            )
        with strategy.scope():
            optimizer.build(model.trainable_variables)
        self._compiled = TrainingStep(
            model=model,
            loss=loss,
            optimizer=optimizer,
            strategy=strategy,
            clip_norm=settings.gradient_clip_norm,
            seed=settings.seed,
            use_xla=use_xla,
            scale_loss=scale_loss,
            averages=self._averages,
        )
        self._variables = variables_by_name(
            {
                "model": model.variables,
                "optimizer": optimizer.variables,
                "loss_scale": [self._compiled.loss_scale, self._compiled.good_steps],
                "average": self._averages.variables if self._averages else [],
            }
        )
        self._course = Course(settings)
        self._agreement = Agreement(strategy)
        self._files = RunFiles(
            run_directory,
            writes=is_chief(strategy),
            keep_checkpoints=settings.keep_checkpoints,
            console=console,
        )
        self._stop_reason: str | None = None
        self._step = 0
        self._saved_step = -1
        self._builder = LineBuilder()
        self._lines: dict[str, Line] = {}
        self._notes: dict[str, Any] = {}

    def request_stop(self, reason: str) -> None:
        """Makes `run` save a checkpoint and raise `StoppedEarly` before its next update."""
        self._stop_reason = reason

    def run(self) -> TrainingResult:
        """Trains to the end.

        Raises:
            StoppedEarly: SIGTERM, Ctrl-C or `request_stop`; a checkpoint has been saved.
            InputError: the loss or a gradient is not finite, or all checkpoints are damaged.
            UsageError: the checkpoint belongs to another model or to other data.
        """
        elapsed_before = self._resume()
        resumed_from = self._step
        self._files.open_log(keep_until=self._step)
        self._pace = Pace(elapsed_before, self._settings.steps_per_call)
        try:
            with on_stop_signal(self.request_stop):
                self._train()
        finally:
            self._files.close_log()
        return TrainingResult(
            step=self._step,
            seconds=self._pace.elapsed(),
            resumed_from=resumed_from,
            train=self._lines.get("train", {}),
            eval=self._lines.get("eval"),
            stopped_early=None
            if self._step == self._settings.total_steps
            else self._early_stop.reason(self._notes),
            notes=self._notes,
        )

    def _train(self) -> None:
        batches, phase = None, self._course.phase_number(self._step)
        while True:
            elapsed, stopping = self._agreed_clock()
            if self._course.progress(self._step, elapsed) >= 1.0:
                break
            if self._early_stop.reason(self._notes):
                break
            if stopping:
                self._save()
                raise StoppedEarly(self._stopped_message())
            if batches is None or phase != self._course.phase_number(self._step):
                phase = self._course.phase_number(self._step)
                batches = self._open_batches(phase)
            self._update(batches, elapsed)
            if self._step % self._settings.log_every == 0:
                self._log_training()
            if self._course.evaluation_is_due(self._step):
                self._log_evaluation()
            if self._course.checkpoint_is_due(self._step, self._pace.seconds_since_checkpoint()):
                self._save()
        self._finish()

    def _open_batches(self, phase: int) -> Iterator[Batch]:
        if len(self._settings.phases) > 1:
            self._console.say(
                f"phase {phase + 1} of {len(self._settings.phases)} from step {self._step}"
            )
        self._pace.expect_compilation()
        return distributed_iterator(
            self._strategy, functools.partial(self._inputs.batches, self._step)
        )

    def _update(self, batches: Iterator[Batch], elapsed: float) -> None:
        """One call of the compiled function: some updates, up to the next thing to do."""
        count = self._pace.steps_of_next_call(self._course.steps_to_boundary(self._step))
        rates = self._course.learning_rates(
            self._step, count, elapsed=elapsed, seconds_per_step=self._pace.seconds_per_step
        )
        phase = self._course.phase(self._step)
        with self._pace.call(count):
            results = self._compiled.run(
                batches,
                first_step=self._step,
                learning_rates=rates,
                accumulation_steps=phase.accumulation_steps,
            )
        self._refuse_divergence(results)
        self._step += count
        results["learning_rate"] = rates
        counts = {name: results.pop(name) for name in WORK_COUNTS}
        if phase.work is not None:
            results["flops"] = phase.work.flops(**counts)
        self._builder.add(results | {name: counts[name] for name in ("examples", "tokens")})

    def _finish(self) -> None:
        if self._builder.pending:
            self._log_training()
        if self._lines.get("eval", {}).get("step") != self._step:
            self._log_evaluation()
        self._save()

    def _agreed_clock(self) -> tuple[float, bool]:
        """Elapsed seconds and whether to stop, the same on all workers."""
        elapsed, stopping = self._pace.elapsed(), self._stop_reason is not None
        if worker_count(self._strategy) == 1:
            return elapsed, stopping
        total = self._agreement.mean(
            [elapsed, float(stopping), self._pace.seconds_per_step, self._step]
        )
        if total[3] != self._step:
            raise InputError(
                f"the workers are at different steps ({self._step} here, {total[3]:.1f} on "
                "average); --output must be a folder that all workers share"
            )
        self._pace.seconds_per_step = total[2]
        return total[0], total[1] > 0

    def _refuse_divergence(self, results: dict[str, np.ndarray]) -> None:
        failed = results["finite"] == 0
        if self._scale_loss:  # overflow at the smallest scale is no matter of scale
            failed &= results["loss_scale"] <= 1.0
        if not failed.any():
            return
        step = self._step + int(np.argmax(failed))
        aside = self._files.save_aside(
            step=step, tensors=read_values(self._variables), state=self._state(step)
        )
        saved = f"; the state just before is in {aside}" if aside else ""
        raise InputError(
            f"the loss or a gradient is not finite at step {step + 1}{saved}; try a lower "
            "--learning-rate, a longer warm-up or --set train.precision=float32, with --overwrite"
        )

    def _log_training(self) -> None:
        elapsed = self._pace.elapsed()
        line = self._builder.train_line(
            step=self._step,
            elapsed=elapsed,
            seconds=self._pace.seconds_since_line(),
            peak_flops=self._settings.peak_flops,
        )
        if line is None:
            return
        self._write_line(line)
        seconds_left = self._course.seconds_left(
            self._step, elapsed=elapsed, seconds_per_step=self._pace.seconds_per_step
        )
        self._console.progress(
            progress_text(line, total_steps=self._settings.total_steps, seconds_left=seconds_left)
        )

    def _log_evaluation(self) -> None:
        if self._evaluate is None:
            return
        with self._averages.in_place_of_weights() if self._averages else nullcontext():
            metrics = self._evaluate(self._step, self._notes)
        if metrics:
            self._early_stop.count(self._step, self._notes)
            elapsed = round(self._pace.elapsed(), 3)
            line = {"step": self._step, "split": "eval", "time": elapsed, **metrics}
            self._write_line(line)
            self._console.say(evaluation_text(line))

    def _write_line(self, line: dict[str, Any]) -> None:
        self._lines[line["split"]] = line
        self._files.write_line(line)

    def _state(self, step: int) -> dict[str, Any]:
        return {
            "elapsed_seconds": self._pace.elapsed(),
            "seed": self._settings.seed,
            "position": self._inputs.position(step),
            "pending": self._builder.pending,
            "lines": self._lines,
            "notes": self._notes,
        }

    def _save(self) -> None:
        if self._saved_step != self._step:
            self._files.save(
                step=self._step,
                tensors=read_values(self._variables) if self._files.writes else {},
                state=self._state(self._step),
            )
            self._saved_step = self._step
        self._pace.checkpoint_done()

    def _resume(self) -> float:
        """Restores the newest checkpoint; returns the seconds of training before it."""
        checkpoint = self._files.newest_checkpoint()
        if checkpoint is None:
            return 0.0
        state = checkpoint.state
        position = self._inputs.position(checkpoint.step)
        if state["position"] != position:
            raise UsageError(
                f"{checkpoint.path}: saved at input position {state['position']}, which these data "
                f"reach as {position}: the data have changed since; start again with --overwrite"
            )
        assign_values(self._variables, checkpoint)
        self._step = self._saved_step = checkpoint.step
        self._builder, self._lines = LineBuilder(state["pending"]), state["lines"]
        self._notes.update(state["notes"])
        self._console.say(f"resumed from {checkpoint.path}, step {checkpoint.step}")
        return float(state["elapsed_seconds"])

    def _stopped_message(self) -> str:
        saved = (
            f"saved in {self._files.directory}; the same command goes on from there"
            if self._files.directory is not None
            else "nothing was saved, since there is no run directory"
        )
        return (
            f"stopped at step {self._step} of {self._settings.total_steps} "
            f"({self._stop_reason or 'asked for by another worker'}): {saved}"
        )
