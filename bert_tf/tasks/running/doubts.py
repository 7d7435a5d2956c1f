"""Doubts about a fine-tuned model: it learned nothing, or has not improved for long."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bert_tf.base.wording import quantity, shown_measure
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.running.recipe import ENOUGH_STEPS

if TYPE_CHECKING:
    from bert_tf.tasks.running.finetuning import FinetuningResult

_NEARLY = 0.97  # of the loss without texts; a smaller gain is noise, or far from useful
_LEAST_EVALUATIONS = 3  # without improvement, before it is reported
_LONG = 0.5  # fraction of a run's epochs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """A model beside the best prediction that ignores the texts.

    Attributes:
        metric: the metric that chose the model.
        value: the model's value.
        error: its standard error; None if it is not known.
        baseline: value of the prediction that ignores the texts.
        prediction: description of that, to follow "is no better than".
    """

    metric: str
    value: float
    error: float | None
    baseline: float
    prediction: str

    @property
    def is_better(self) -> bool:
        """Whether the model is better by more than a standard error."""
        return self.value - (self.error or 0.0) > self.baseline

    def doubt(self, *, rows: int, steps: int) -> str:
        """Return a warning that the model is of no use, with advice."""
        decimals = 1 if self.baseline > 1 else 3  # percentages or fractions
        more = ""
        if steps < ENOUGH_STEPS:
            more = (
                f"more --epochs ({quantity(steps, 'step')} were made, and a new head needs about "
                f"{ENOUGH_STEPS}), "
            )
        shown = f"{shown_measure(self.value, self.error)} ({quantity(rows, 'row')})"
        return (
            f"{self.metric} {shown} is no better than {self.prediction} "
            f"({self.baseline:.{decimals}f}): the model is of no use. Try {more}a --learning-rate "
            "three times as high or a third, other weights (--init), or more rows; the worst "
            "rows in report.html may show labels that do not belong to their texts"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the manifest's entry `baseline`."""
        return {**dataclasses.asdict(self), "is_better": self.is_better}


def compared(result: FinetuningResult, metric: str) -> Comparison | None:
    """Compare the best model with the best prediction that ignores the texts.

    Returns:
        None without evaluation rows, or if the task knows no such value of the metric.
    """
    if result.results is None or result.evaluation is None:
        return None
    baseline = result.task.baseline(result.train.source, result.evaluation.source)
    if baseline is None or metric not in baseline.metrics:
        return None
    return Comparison(
        metric=metric,
        value=result.results.metrics[metric],
        error=result.results.errors.get(metric),
        baseline=baseline.metrics[metric],
        prediction=baseline.prediction,
    )


def learning_doubts(result: FinetuningResult) -> Iterator[str]:
    """Warn if the training loss, and that of evaluation if there is one, stayed at chance.

    Needs both: the training loss is a mean over the last steps, in a short run over all of them.
    """
    chance = result.train.chance_loss
    loss = result.training.train.get("loss")
    if chance is None or loss is None or loss < _NEARLY * chance:
        return
    if _is_below_chance(result.training.eval, result.evaluation):
        return
    yield (
        f"the training loss ended at {loss:.4f}, no better than a model that ignores the texts "
        f"({chance:.4f}): nothing was learned. Likely causes: a learning rate that is too high or "
        "too low, too few steps, labels that do not belong to their rows"
    )


def _is_below_chance(measured: Mapping[str, float] | None, data: TaskData | None) -> bool:
    if measured is None or data is None or data.chance_loss is None:
        return False
    return measured["loss"] < _NEARLY * data.chance_loss


def not_improved(metric: str, *, improved_epoch: float, epochs: float) -> str | None:
    """Report that a run has not improved for half of its epochs or longer.

    Args:
        metric: the metric that chooses the best model.
        improved_epoch: epoch of the last improvement.
        epochs: epochs so far.

    Returns:
        A sentence; None if the run has improved.
    """
    since = epochs - improved_epoch
    if since < _LEAST_EVALUATIONS or since < _LONG * epochs:
        return None
    also = "" if metric == "loss" else ", nor the loss where it is within its standard error"
    return f"{metric} has not improved since epoch {improved_epoch:g} of {epochs:g}{also}"
