"""The best model of a run in `best/`, and early stopping."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from bert_tf.data.text.casing import Lowercase
from bert_tf.weights.model_directory import Restore, write_model_directory

_PERFECT = (1.0, 100.0)  # the latter of answers to questions
IMPROVED = "improved_at"
"""The note of the step of the last improvement, where that is not the step of the best model."""
_NOTE = "evaluations_since_best"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BestModel:
    """The model in `best/`.

    Attributes:
        epoch: passes over the training rows; None where runs only have steps.
        phase: of a run of several, from 1; the metric is compared within it.
        metric: None for the last model, without evaluation.
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
        """Reads `notes["best"]` of a training loop; without `steps_per_epoch` no epochs."""
        return cls(
            step=best["step"],
            epoch=round(best["step"] / steps_per_epoch, 4) if steps_per_epoch else None,
            phase=best.get("phase"),
            metric=metric if metric in best else None,
            value=best.get(metric),
        )

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> Self | None:
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
    """Writes `best/` whenever a model is the best so far; without evaluation that is the newest.

    The metric decides (the lowest of a loss, the highest of anything else), and among equals the
    `loss`. Metrics on different data cannot be compared, so every phase of a run starts anew.
    Only the chief `writes`; `restore` puts back what the model was built without.
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
        """Compares with `notes["best"]`, which survives in checkpoints, and updates it.

        All workers compare at once, so that their notes stay the same. If the run was killed while
        publishing its best model, the next one is the best.

        Args:
            found: `step`, and in a run of several phases `phase`.
            metrics: of the evaluation; empty without evaluation.
            task: content of `task.json`, kept in `notes["task"]`; None for a pretrained model.
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
    """Sort key of models from worse to better: the metric, then the loss; NaN is the worst."""
    value = metrics[metric]
    value = -value if _is_lower_better(metric) else value
    return _ranked(value), _ranked(-metrics.get("loss", 0.0))


def _ranked(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _is_lower_better(metric: str) -> bool:
    return metric.endswith("loss")


class EarlyStop:
    """Counts evaluations since the last improvement, in the notes that checkpoints keep.

    A lower loss with a metric that is perfect already is no improvement. 0 evaluations never stop.
    """

    def __init__(self, evaluations: int):
        self._limit = evaluations

    def count(self, step: int, notes: dict[str, Any]) -> None:
        if self._limit:
            notes[_NOTE] = 0 if _improved_at(notes) == step else notes.get(_NOTE, 0) + 1

    def reason(self, notes: dict[str, Any]) -> str | None:
        if not self._limit or notes.get(_NOTE, 0) < self._limit:
            return None
        return f"no better evaluation in {self._limit} since step {_improved_at(notes)}"


def _improved_at(notes: dict[str, Any]) -> int:
    return int(notes.get(IMPROVED, notes["best"]["step"]))
