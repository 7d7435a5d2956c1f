"""Keep the best model of a run in `best/`, and stop a run that no longer improves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from bert_tf.data.text.casing import Lowercase
from bert_tf.weights.model_directory import Restore, write_model_directory

# The highest value of a metric: fractions, and percentages of question answering.
_PERFECT = (1.0, 100.0)

# Keys of the notes that checkpoints keep. `IMPROVED` is the step of the last improvement. It is
# older than the best model if that model only has a lower loss with an already perfect metric.
IMPROVED = "improved_at"
_EVALUATIONS_SINCE_BEST = "evaluations_since_best"
_LOWEST_LOSS = "lowest_loss"  # with its step
_EXCEEDING_LOSS = "exceeding_loss"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BestModel:
    """What the manifest says about the model in `best/`.

    Attributes:
        step: number of steps that the model was trained for.
        epoch: passes over the training rows; None if the run is only counted in steps.
        phase: number of the phase, from 1; None for runs of one phase. The metric is only compared
            within a phase.
        metric: name of the metric that the model was chosen by; None for the last model of a run
            without evaluation.
        value: value of the metric; None without one.
    """

    step: int
    epoch: float | None = None
    phase: int | None = None
    metric: str | None = None
    value: float | None = None

    @classmethod
    def of_notes(
        cls, best: dict[str, Any], *, metric: str, steps_per_epoch: int | None = None
    ) -> Self:
        """Read `notes["best"]` of a training loop.

        Args:
            best: the value of `notes["best"]`, see `BestModelKeeper.keep_if_best`.
            metric: name of the metric that models are chosen by.
            steps_per_epoch: for `epoch`, which is None without it.
        """
        return cls(
            step=best["step"],
            epoch=round(best["step"] / steps_per_epoch, 4) if steps_per_epoch else None,
            phase=best.get("phase"),
            metric=metric if metric in best else None,
            value=best.get(metric),
        )

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
        extreme = "lowest" if _is_lower_better(self.metric) else "highest"
        return f"the model of {place}{of_phase}, with the {extreme} {self.metric}: {self.value:.4f}"


@dataclasses.dataclass(eq=False)
class BestModelKeeper:
    """Write `best/` whenever a model is the best so far; without evaluation that is the newest.

    The metric decides (a loss: the lowest, everything else: the highest). Ties are broken by the
    `loss`. Metrics on different data cannot be compared, so every phase of a run starts anew.

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
        found: dict[str, Any],
        metrics: dict[str, float],
        notes: dict[str, Any],
        task: dict[str, Any] | None = None,
    ) -> bool:
        """Compare with `notes["best"]`, which is saved in checkpoints, and update it.

        All workers compare, so that their notes stay the same. If `best/` is missing when a run
        resumes, because the process was killed while it replaced the directory, the next model is
        the best.

        Args:
            found: `step`, and in a run of several phases `phase`.
            metrics: result of the evaluation; empty without evaluation.
            notes: notes of the loop; receives `best`, `task` and `IMPROVED`.
            task: content of `task.json`; None for a pretrained model.

        Returns:
            Whether this model is the best so far.
        """
        best = None if self._is_first and not self.path.is_dir() else notes.get("best")
        self._is_first = False
        if not self._is_best(found, metrics, best):
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
        value = metrics.get(self.metric)
        if best is None or value not in _PERFECT or value != best.get(self.metric):
            notes[IMPROVED] = found["step"]
        notes["best"] = {**found, **metrics}
        if task is not None:
            notes["task"] = task
        return True

    def _is_best(
        self, found: dict[str, Any], metrics: dict[str, float], best: dict[str, Any] | None
    ) -> bool:
        if best is None or best.get("phase") != found.get("phase"):
            return True
        if not metrics or self.metric not in best:
            return True
        return rank(metrics, self.metric) > rank(best, self.metric)


def rank(metrics: Mapping[str, float], metric: str) -> tuple[float, float]:
    """Return a sort key that orders models from worse to better; NaN is the worst.

    Returns:
        (metric, negative loss); the sign of the metric is flipped if lower is better.
    """
    value = metrics[metric]
    value = -value if _is_lower_better(metric) else value
    return _ranked(value), _ranked(-metrics.get("loss", 0.0))


def _ranked(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _is_lower_better(metric: str) -> bool:
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
        has_improved = _improved_at(notes) == step
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
        """Return why the run ends here; None if it goes on."""
        if self._limit and notes.get(_EVALUATIONS_SINCE_BEST, 0) >= self._limit:
            return f"no better evaluation in {self._limit} since step {_improved_at(notes)}"
        if self._loss_factor and _EXCEEDING_LOSS in notes:
            lowest = notes[_LOWEST_LOSS]
            return (
                f"the evaluation loss, {notes[_EXCEEDING_LOSS]:.4f}, is over "
                f"{self._loss_factor:g} times its lowest, {lowest['loss']:.4f} at step "
                f"{lowest['step']}"
            )
        return None


def _improved_at(notes: dict[str, Any]) -> int:
    return int(notes.get(IMPROVED, notes["best"]["step"]))
