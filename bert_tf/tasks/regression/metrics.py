"""Predicted numbers and their measures.

Measures are by the definitions of SciPy and scikit-learn.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.explained import Outputs, PlacedRow, Target, logit_target
from bert_tf.tasks.base.host_task import TableHost
from bert_tf.tasks.base.labels import pearson, spearman
from bert_tf.tasks.regression.options import REGRESSION


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionHost(TableHost):
    """The task around its graph: the only logit is the number."""

    declaration: ClassVar[ServedTaskDeclaration] = REGRESSION

    def targets(
        self, placed: PlacedRow, outputs: Outputs, predicted: Mapping[str, Any]
    ) -> list[Target]:
        return [logit_target(outputs["logits"], 0, "value")]  # before it is scaled

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        return {"predicted_value": logits[:, 0]}


_SENTINEL = re.compile(r"-1|-?9+")  # usual stand-ins for a missing number
_LEAST_VALUES = 4  # among fewer different numbers, none can be told to be far from the others


def missing_number(labels: np.ndarray) -> float | None:
    """Return a number that stands for missing ones: -999 beside 0 to 5.

    It is -1 or nines, several rows have it, and it is farther from all others than these are from
    each other.

    Args:
        labels: float [rows].
    """
    values, counts = np.unique(labels, return_counts=True)
    if len(values) < _LEAST_VALUES:
        return None
    for place, gap, others in (
        (0, values[1] - values[0], values[1:]),
        (-1, values[-1] - values[-2], values[:-1]),
    ):
        is_far = gap > np.ptp(others)
        if counts[place] > 1 and is_far and _SENTINEL.fullmatch(f"{values[place]:.15g}"):
            return float(values[place])
    return None


def regression_metrics(gold: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Compute Pearson and Spearman correlation, R², mean squared and mean absolute error.

    If either side is constant, correlations are 0; so is R² if gold is (scikit-learn
    `r2_score(force_finite=True)`, unless all are predicted exactly).

    Args:
        gold, predicted: float [rows], at least one row.
    """
    gold = gold.astype(np.float64)
    predicted = predicted.astype(np.float64)
    squares = np.square(predicted - gold)
    mse = float(squares.mean())
    variance = float(gold.var()) if np.ptp(gold) else 0.0
    return {
        "pearson": pearson(gold, predicted),
        "spearman": spearman(gold, predicted),
        "r2": 1 - mse / variance if variance else float(mse == 0),
        "mse": mse,
        "rmse": mse**0.5,
        "mae": float(np.abs(predicted - gold).mean()),
    }


# As a fraction of the largest number: float32, in which models compute, has 7 digits.
_LEAST_DEVIATION = 1e-5


def mean_and_deviation(numbers: np.ndarray, source: str, column: str) -> tuple[float, float]:
    """Return mean and standard deviation of labels.

    Args:
        numbers: float64 [rows].
        source: the file, for messages.
        column: name of the column of labels, for messages.

    Raises:
        InputError: all numbers are equal to float32's precision.
    """
    mean = float(numbers.mean())
    deviation = float(numbers.std())
    largest = float(np.abs(numbers).max())
    if not np.ptp(numbers):
        raise InputError(
            f"{source}: column {column!r} holds {numbers[0]:g} in every row; regression needs "
            "numbers that differ"
        )
    if deviation < _LEAST_DEVIATION * largest:
        raise InputError(
            f"{source}: the numbers of column {column!r} deviate by {deviation:.2g} from their "
            f"mean {mean:.7g}, less than float32 can learn; subtract a constant from them"
        )
    return mean, deviation


def warn_of_one_number(numbers: np.ndarray, source: str, column: str, console: Console) -> None:
    """Warn if all evaluation rows have the same number, which correlates with nothing.

    Args:
        numbers: float64 [rows].
        source: the file.
        column: name of the column of labels.
        console: shows the warning.
    """
    if not np.ptp(numbers):
        console.warn(
            f"{source}: column {column!r} holds {numbers[0]:g} in every row, so correlations "
            "and R² are not defined and reported as 0"
        )
