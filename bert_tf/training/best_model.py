"""Keep the best model of a run in `best/`, and stop a run that no longer improves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from bert_tf.base.wording import shown_measure
from bert_tf.data.text.casing import Lowercase
from bert_tf.weights.model_directory import Restore, write_model_directory

# The highest value of a metric: fractions, and percentages of question answering.
PERFECT = (1.0, 100.0)

# Keys of the notes that checkpoints keep. `IMPROVED` is the step of the last improvement. It is
# older than the best model if that model only has a lower loss with an already perfect metric.
IMPROVED = "improved_at"
# Why the run ends at the next step, regardless of its metrics; noted by an evaluation.
STOP = "stop"
_TOP = "top"  # step, value and standard error of the best metric so far, regardless of the loss
_EVALUATIONS_SINCE_BEST = "evaluations_since_best"
_LOWEST_LOSS = "lowest_loss"  # with its step
_EXCEEDING_LOSS = "exceeding_loss"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BestModel:
    """Facts of the manifest about the model in `best/`.

    Attributes:
        step: number of steps that the model was trained for.
        epoch: passes over the training rows; None if the run is only counted in steps.
        phase: number of the phase, from 1; None for runs of one phase. The metric is only compared
            within a phase.
        metric: name of the metric that the model was chosen by; None for the last model of a run
            without evaluation.
        value: value of the metric; None without one.
        error: standard error of the value; None if it is not known.
        rows: number of rows that it was measured on; None if that is not known.
        best_value: best value of any epoch, if this model was chosen by the loss among those within
            the error of it; else None.
        best_epoch: epoch of `best_value`.
    """

    step: int
    epoch: float | None = None
    phase: int | None = None
    metric: str | None = None
    value: float | None = None
    error: float | None = None
    rows: int | None = None
    best_value: float | None = None
    best_epoch: float | None = None

    @classmethod
    def of_notes(
        cls, notes: dict[str, Any], *, metric: str, steps_per_epoch: int | None = None
    ) -> Self:
        """Read the notes of a training loop.

        Args:
            notes: with the `best` model, see `BestModelKeeper.keep_if_best`.
            metric: name of the metric that models are chosen by.
            steps_per_epoch: for epochs, which are None without it.
        """

        def epoch_of(step: int) -> float | None:
            return round(step / steps_per_epoch, 4) if steps_per_epoch else None

        best = notes["best"]
        top = notes.get(_TOP, {})
        is_by_loss = bool(top) and metric in best and best[metric] != top["value"]
        return cls(
            step=best["step"],
            epoch=epoch_of(best["step"]),
            phase=best.get("phase"),
            metric=metric if metric in best else None,
            value=best.get(metric),
            best_value=top["value"] if is_by_loss else None,
            best_epoch=epoch_of(top["step"]) if is_by_loss else None,
        )

    def measured(self, value: float, error: float | None, rows: int) -> Self:
        """Return the model with its metric as measured anew, such as in another precision."""
        return dataclasses.replace(self, value=value, error=error, rows=rows)

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> Self | None:
        """Read the best model from a manifest of a run or an export; None if it names none."""
        values = manifest.get("best_model")
        return None if values is None else cls(**values)

    def __str__(self) -> str:
        of_phase = f" of phase {self.phase}" if self.phase else ""
        if self.metric is None:
            last = f"epoch (step {self.step})" if self.epoch else f"step ({self.step})"
            return f"the model of the last {last}{of_phase}; there was no evaluation to choose by"
        place = f"step {self.step}"
        if self.epoch:
            place = f"epoch {self.epoch:g} ({place})"
        value = shown_measure(self.value or 0.0, self.error, self.rows)
        extreme = "lowest" if is_lower_better(self.metric) else "highest"
        if self.best_value is None:
            return f"the model of {place}{of_phase}, with the {extreme} {self.metric}: {value}"
        best = shown_measure(self.best_value)
        when = f" of epoch {self.best_epoch:g}" if self.best_epoch else ""
        return (
            f"the model of {place}{of_phase}, {self.metric} {value}: of those within the standard "
            f"error of the {extreme}, {best}{when}, it has the lowest loss"
        )


@dataclasses.dataclass(eq=False)
class BestModelKeeper:
    """Write `best/` whenever a model is the best so far; without evaluation that is the newest.

    The metric decides (a loss: the lowest, everything else: the highest), and within its standard
    error the `loss`: of the models whose metric is at most one standard error worse than the best
    so far, the one with the lowest loss (the one-standard-error rule of Breiman et al. 1984). On 20
    rows, one row more that is right by chance would otherwise choose a model that has hardly begun
    to learn. A model that was passed over is gone: if a new best metric leaves the kept model
    behind, the new model is kept. Without errors, ties are broken by the loss.

    Metrics on different data cannot be compared, so every phase of a run starts anew.

    Attributes:
        path: the model directory to write.
        model: a built model of `bert_tf.models`.
        metric: name of the metric that models are chosen by.
        vocab: tokens of the vocabulary, in the order of their ids.
        lowercase: whether the tokenizer lowercases text, or how.
        writes: whether this process writes; only the chief of several workers does.
        restore: adds back weights that the model was built without; None if it has all.
    """

    path: Path
    model: Any
    metric: str
    vocab: list[str]
    lowercase: Lowercase
    writes: bool
    restore: Restore | None = None
    _is_first: bool = dataclasses.field(default=True, init=False)

    def keep_if_best(
        self,
        place: dict[str, Any],
        metrics: dict[str, float],
        notes: dict[str, Any],
        task: dict[str, Any] | None = None,
        errors: Mapping[str, float] | None = None,
    ) -> bool:
        """Compare with `notes["best"]`, which is saved in checkpoints, and update it.

        All workers compare, so that their notes stay the same. If `best/` is missing when a run
        resumes, because the process was killed while it replaced the directory, the next model is
        the best.

        Args:
            place: `step`, and in a run of several phases `phase`.
            metrics: result of the evaluation, the same on all workers, see `WorkerSync.of_chief`;
                empty without evaluation.
            notes: notes of the loop; receives `best`, `task`, `IMPROVED` and the `top` metric.
            task: content of `task.json`; None for a pretrained model.
            errors: standard errors of metrics, as far as known, the same on all workers.

        Returns:
            Whether this model is the best so far.
        """
        errors = errors or {}
        best = None if self._is_first and not self.path.is_dir() else notes.get("best")
        self._is_first = False
        if best is not None and best.get("phase") != place.get("phase"):
            best = None
        top = None
        if best is not None and self.metric in best:
            # Earlier releases noted no top: there the kept model had the best metric.
            top = notes.get(_TOP, {"value": best[self.metric], "error": 0.0})
        value = metrics.get(self.metric)
        is_top = top is None or value is None or self._order(value) > self._order(top["value"])
        if is_top and value is not None:
            error = errors.get(self.metric, 0.0)
            top = {"step": place["step"], "value": value, "error": error}
            notes[_TOP] = top
        if is_top:
            notes[IMPROVED] = place["step"]
        is_compared = not (best is None or top is None or value is None)
        if is_compared and not self._is_preferred(metrics, best or {}, top or {}, is_top=is_top):
            return False
        if self.writes:
            write_model_directory(
                self.path,
                self.model,
                vocab=self.vocab,
                lowercase=self.lowercase,
                task=task,
                restore=self.restore,
            )
        if best is None or value not in PERFECT or value != best.get(self.metric):
            notes[IMPROVED] = place["step"]
        notes["best"] = {**place, **metrics}
        if task is not None:
            notes["task"] = task
        return True

    def _is_preferred(
        self,
        metrics: Mapping[str, float],
        best: Mapping[str, Any],
        top: Mapping[str, float],
        *,
        is_top: bool,
    ) -> bool:
        """Return whether a model replaces the kept one, by the one-standard-error rule.

        Args:
            best: metrics of the kept model.
            top: value and standard error of the best metric so far, this model's included.
            is_top: whether that is this model's.
        """
        bar = self._order(top["value"]) - top["error"]
        is_left_behind = self.metric not in best or self._order(best[self.metric]) < bar
        if is_left_behind or "loss" not in metrics or "loss" not in best:
            return is_top
        if self._order(metrics[self.metric]) < bar:
            return False
        return _by_loss(metrics, self.metric) > _by_loss(best, self.metric)

    def _order(self, value: float) -> float:
        return _ascending(value, self.metric)


def rank(metrics: Mapping[str, float], metric: str) -> tuple[float, float]:
    """Return a sort key that orders models from worse to better; NaN is the worst.

    Returns:
        (metric, negative loss); the sign of the metric is flipped if lower is better.
    """
    loss, value = _by_loss(metrics, metric)
    return value, loss


def _by_loss(metrics: Mapping[str, float], metric: str) -> tuple[float, float]:
    """Return the key of `rank` with the loss first."""
    loss = metrics.get("loss", 0.0)
    return _ascending(loss, "loss"), _ascending(metrics[metric], metric)


def _ascending(value: float, metric: str) -> float:
    """Return a number that is higher for better values of a metric; NaN is the worst."""
    if math.isnan(value):
        return -math.inf
    return -value if is_lower_better(metric) else value


def is_lower_better(metric: str) -> bool:
    """Return whether a lower value of a metric is a better one: losses."""
    return metric.endswith("loss")


class EarlyStop:
    """Ends a run that has stopped improving, by the notes that checkpoints keep.

    Args:
        evaluations: since the last improvement that end the run; 0 never does. A lower loss with a
            metric that is perfect already is no improvement.
        loss_factor: ends the run at an evaluation that is no improvement and whose loss exceeds
            the lowest so far by this factor; 0 never does.
    """

    def __init__(self, evaluations: int, *, loss_factor: float = 0.0):
        self._limit = evaluations
        self._loss_factor = loss_factor

    def count(self, step: int, notes: dict[str, Any], metrics: Mapping[str, float]) -> None:
        """Note an evaluation, after the best model so far is in the notes."""
        has_improved = improved_at(notes) == step
        if self._limit:
            notes[_EVALUATIONS_SINCE_BEST] = (
                0 if has_improved else notes.get(_EVALUATIONS_SINCE_BEST, 0) + 1
            )
        loss = metrics.get("loss", math.nan)
        if not self._loss_factor or math.isnan(loss):
            return
        lowest = notes.get(_LOWEST_LOSS)
        if lowest is None or loss <= lowest["loss"]:
            notes[_LOWEST_LOSS] = {"step": step, "loss": loss}
        elif not has_improved and loss > self._loss_factor * lowest["loss"]:
            notes[_EXCEEDING_LOSS] = loss

    def reason(self, notes: dict[str, Any]) -> str | None:
        """Return the reason to end the run here; None if it continues."""
        if STOP in notes:
            return str(notes[STOP])
        if self._limit and notes.get(_EVALUATIONS_SINCE_BEST, 0) >= self._limit:
            return f"no better evaluation in {self._limit} since step {improved_at(notes)}"
        if self._loss_factor and _EXCEEDING_LOSS in notes:
            lowest = notes[_LOWEST_LOSS]
            return (
                f"the evaluation loss, {notes[_EXCEEDING_LOSS]:.4f}, is over "
                f"{self._loss_factor:g} times its lowest, {lowest['loss']:.4f} at step "
                f"{lowest['step']}"
            )
        return None


def improved_at(notes: dict[str, Any]) -> int:
    """Return the step of the last improvement, by the notes of `BestModelKeeper`."""
    if IMPROVED in notes:
        return int(notes[IMPROVED])
    return int(notes["best"]["step"]) if "best" in notes else 0
