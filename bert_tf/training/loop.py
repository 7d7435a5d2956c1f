"""The training loop of every task: steps, log lines, evaluations, checkpoints, resume.

Order of events: `run` restores the newest checkpoint, truncates the log to it, and repeats: agree
with the other workers on clock and signals, run some steps, then log, evaluate and save if they
are due. An evaluation precedes the checkpoint of the same step, so that the checkpoint contains its
result. Workers agree before each call because all must run the same steps.

Resume is exact because everything a step depends on is either in the checkpoint (variables,
optimizer, loss scale, averages) or a function of the step number (batches, dropout keys, learning
rates).
"""

from __future__ import annotations

import dataclasses
import functools
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from signal import Signals
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, StoppedEarly, handling_signals
from bert_tf.training.arithmetic import Arithmetic
from bert_tf.training.best_model import EarlyStop
from bert_tf.training.distribution import (
    WorkerSync,
    distributed_iterator,
    naming_lost_worker,
)
from bert_tf.training.optimizers import StepOptimizer
from bert_tf.training.progress import ProgressLog, RunState
from bert_tf.training.protocols import Batch, TaskLoss, TrainingInputs
from bert_tf.training.run_files import RunFiles, RunMirror, variables_by_name
from bert_tf.training.step import TrainingStep
from bert_tf.training.throughput import WORK_COUNTS
from bert_tf.training.timeline import LoopSettings, StepTimer, Timeline
from bert_tf.training.weight_average import WeightAverages

# Evaluates the model; see the argument `evaluate` of `TrainingLoop`.
Evaluate = Callable[[int, dict[str, Any]], dict[str, float]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """Outcome of a run.

    Attributes:
        step: steps done in all.
        seconds: training time in all, evaluations and checkpoints included.
        resumed_from: step of the checkpoint that this process resumed from; 0 for a fresh start.
        train: last train line of metrics.jsonl; {} if there is none.
        eval: last eval line; None without evaluation.
        extended_from: steps after which the number of steps was raised.
        stopped_early: why the run ended before its last step; None if it did not, or if its time
            was over.
        notes: JSON values that `evaluate` kept.
    """

    step: int
    seconds: float
    resumed_from: int
    train: dict[str, Any]
    eval: dict[str, Any] | None
    extended_from: list[int]
    stopped_early: str | None
    notes: dict[str, Any]


class TrainingLoop:
    """Trains a built model under any strategy.

    `run` resumes from the newest checkpoint in `run_directory`. On one device in float32 the
    following losses equal those of a run that was never interrupted, to the last bit. A checkpoint
    of a run of fewer steps in all is extended, with the learning rates of the new number of steps.

    Args:
        model: a built Keras model, made in the scope of the strategy.
        loss: loss and metrics of the task.
        optimizer: result of `make_optimizer`, made in the scope of the strategy; the loop builds it
            and sets its learning rate.
        inputs: training batches, addressed by the step number.
        strategy: strategy that steps are distributed by.
        settings: how long, how fast and how carefully to train.
        run_directory: gets `metrics.jsonl`, `checkpoints/` and the files of trackers; None keeps
            nothing.
        arithmetic: how steps are computed; the model must have its dtype policy.
        console: receives progress and warnings.
        evaluate: called with (steps done, notes) every `eval_every` steps and at the end of a
            phase, on every worker, while the model has its averaged weights if any; returns the
            numbers of an eval line ({} logs nothing). `notes` is a dict of JSON values, saved in
            checkpoints: the place to remember the best result so far, whose step `early_stop_evals`
            takes from `notes["best"]["step"]`.
        mirror: storage that receives the run after each checkpoint; None if `run_directory` is its
            place.
        run_step: called in place of `TrainingStep.run`, with its arguments, by those who watch or
            interrupt steps.

    Attributes:
        inputs: training batches.
        training_step: the compiled step.
        variables: all that a checkpoint holds, by name (`model/0000`, `optimizer/0000`, …).
        run_step: see above.
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
        arithmetic: Arithmetic,
        console: Console,
        evaluate: Evaluate | None = None,
        mirror: RunMirror | None = None,
        run_step: Callable[..., dict[str, np.ndarray]] | None = None,
    ):
        self.inputs = inputs
        self._strategy = strategy
        self._settings = settings
        self._console = console
        self._evaluate = evaluate
        self._scale_loss = arithmetic.precision.scale_loss
        self._early_stop = EarlyStop(
            settings.early_stop_evals, loss_factor=settings.early_stop_loss
        )
        self._averages = WeightAverages.of_model(model, decay=settings.ema_decay, strategy=strategy)
        with strategy.scope():
            optimizer.build(model.trainable_variables)
        self.training_step = TrainingStep(
            model=model,
            loss=loss,
            optimizer=optimizer,
            strategy=strategy,
            arithmetic=arithmetic,
            clip_norm=settings.gradient_clip_norm,
            seed=settings.seed,
            averages=self._averages,
        )
        self.run_step = run_step or self.training_step.run
        self._timeline = Timeline(settings)
        self._worker_sync = WorkerSync(strategy)
        self._files = self._run_files(run_directory, mirror)
        self.variables = variables_by_name(self.training_step.variables)
        self._log = ProgressLog(settings, self._timeline, self._files, console)
        self._state = RunState(
            variables=self.variables,
            inputs=inputs,
            seed=settings.seed,
            total_steps=settings.total_steps,
            log=self._log,
            files=self._files,
            console=console,
        )
        self._stop: Signals | None = None
        self._step = 0
        # Whether nothing but steps has read or assigned the model and the optimizer since the last
        # call, see `TrainingStep.run`.
        self._is_untouched = False

    def _run_files(self, run_directory: Path | None, mirror: RunMirror | None) -> RunFiles:
        """Return the files of the run, which only the chief writes."""
        return RunFiles(
            run_directory,
            writes=self._worker_sync.writes,
            keep_checkpoints=self._settings.keep_checkpoints,
            console=self._console,
            mirror=mirror,
            trackers=self._settings.report_to,
            settings=self._settings.reported,
        )

    def request_stop(self, stop: Signals = Signals.SIGTERM) -> None:
        """Make `run` save a checkpoint and raise `StoppedEarly` before its next step."""
        self._stop = stop

    def run(self) -> TrainingResult:
        """Train to the end.

        Raises:
            RunnerFailed: another worker is gone; all have to be started again.
            StoppedEarly: SIGTERM, Ctrl-C or `request_stop`; a checkpoint has been saved.
            InputError: the loss or a gradient is not finite, or all checkpoints are damaged.
            UsageError: the checkpoint belongs to another model or other data, or has more steps.
        """
        self._step, elapsed_before = self._state.restore()
        resumed_from = self._step
        self._files.open_log(
            keep_until={split: line["step"] for split, line in self._log.lines.items()}
        )
        self._step_timer = StepTimer(elapsed_before, self._settings.steps_per_call)
        is_finished = False
        try:
            with on_stop_signal(self.request_stop), naming_lost_worker(self._strategy):
                self._train()
            is_finished = True
        finally:
            self._files.close_log(is_finished=is_finished)
        is_complete = self._step == self._settings.total_steps
        return TrainingResult(
            step=self._step,
            seconds=self._step_timer.elapsed(),
            resumed_from=resumed_from,
            train=self._log.lines.get("train", {}),
            eval=self._log.lines.get("eval"),
            extended_from=self._state.extended_from,
            stopped_early=None if is_complete else self._early_stop.reason(self._state.notes),
            notes=self._state.notes,
        )

    def _train(self) -> None:
        batches = None
        phase = self._timeline.phase_number(self._step)
        while True:
            elapsed, stop = self._worker_sync.clock(
                self._step_timer, step=self._step, stop=self._stop
            )
            if self._timeline.progress(self._step, elapsed) >= 1.0:
                break
            if self._early_stop.reason(self._state.notes):
                break
            if stop is not None:
                self._save()
                self._files.publish_rest()
                raise StoppedEarly(self._stopped_message(stop), stop)
            if batches is None or phase != self._timeline.phase_number(self._step):
                phase = self._timeline.phase_number(self._step)
                batches = self._open_batches(phase)
            self._run_steps(batches, elapsed)
            if self._step % self._settings.log_every == 0:
                self._log.write_training(self._step, self._step_timer)
            if self._timeline.evaluation_is_due(self._step):
                self._run_evaluation()
            if self._timeline.checkpoint_is_due(
                self._step, self._step_timer.seconds_since_checkpoint()
            ):
                self._save()
        self._finish()

    def _open_batches(self, phase: int) -> Iterator[Batch]:
        if len(self._settings.phases) > 1:
            self._console.info(
                f"phase {phase + 1} of {len(self._settings.phases)} from step {self._step}"
            )
        self._step_timer.expect_compilation()
        return distributed_iterator(
            self._strategy,
            functools.partial(self.inputs.batches, self._step),
            batches_ahead=self.training_step.batches_ahead,
        )

    def _run_steps(self, batches: Iterator[Batch], elapsed: float) -> None:
        """Run one compiled call, up to the next log line, evaluation or checkpoint."""
        count = self._step_timer.steps_of_next_call(self._timeline.steps_to_boundary(self._step))
        rates = self._timeline.learning_rates(
            self._step, count, elapsed=elapsed, seconds_per_step=self._step_timer.seconds_per_step
        )
        phase = self._timeline.phase(self._step)
        with self._step_timer.call(count):
            results = self.run_step(
                batches,
                first_step=self._step,
                learning_rates=rates,
                accumulation_steps=phase.accumulation_steps,
                untouched=self._is_untouched,
            )
        self._is_untouched = True
        self._check_finite(results)
        self._step += count
        results["learning_rate"] = rates
        counts = {name: results.pop(name) for name in WORK_COUNTS}
        if phase.work is not None:
            results["flops"] = phase.work.flops(**counts)
        self._log.add(results | {name: counts[name] for name in ("examples", "tokens")})

    def _finish(self) -> None:
        self._log.end_training(self._step, self._step_timer)
        if self._state.evaluated_step != self._step:
            self._run_evaluation()
        self._save()
        self._files.publish_rest()

    def _check_finite(self, results: dict[str, np.ndarray]) -> None:
        failed = results["finite"] == 0
        if self._scale_loss:
            # An overflow is normal while the scale is found; at the smallest scale it is a fault.
            failed &= results["loss_scale"] <= 1.0
        if not failed.any():
            return
        step = self._step + int(np.argmax(failed))
        aside = self._state.save_aside(step, self._step_timer.elapsed())
        saved = f"; the state just before is in {aside}" if aside else ""
        raise InputError(
            f"the loss or a gradient is not finite at step {step + 1}{saved}; try a lower "
            "--learning-rate, a longer warmup or --set train.precision=float32, with --overwrite"
        )

    def _run_evaluation(self) -> None:
        if self._step == self._settings.total_steps:
            self._log.end_training(self._step, self._step_timer)
        if self._evaluate is None:
            return
        self._is_untouched = False
        with self._averages.in_place_of_weights() if self._averages else nullcontext():
            metrics = self._evaluate(self._step, self._state.notes)
        self._state.evaluated_step = self._step
        if metrics:
            self._early_stop.count(self._step, self._state.notes, metrics)
            self._log.write_evaluation(self._step, self._step_timer, metrics)

    def _save(self) -> None:
        self._is_untouched = False
        self._state.save(self._step, self._step_timer.elapsed())
        self._step_timer.checkpoint_done()

    def _stopped_message(self, stop: Signals) -> str:
        saved = "nothing was saved, since there is no run directory"
        if self._files.place is not None:
            saved = f"saved in {self._files.place}; run the same command again to resume"
        return (
            f"stopped at step {self._step} of {self._settings.total_steps} ({stop.name}): {saved}"
        )


def on_stop_signal(stop: Callable[[Signals], None]) -> AbstractContextManager[None]:
    """Call `stop` with the first SIGTERM or SIGINT inside the block, in the main thread only.

    A second SIGTERM ends the process at once; a second SIGINT has its former effect.
    """

    def handle(number: Signals, restore: Callable[[], None]) -> None:
        restore()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        stop(number)

    return handling_signals(handle)
