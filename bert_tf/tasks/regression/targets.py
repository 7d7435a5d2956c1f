"""What training learns of labels that are numbers."""

from __future__ import annotations

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError

# Of the largest number: float32, which models compute in, has 7 digits.
_LEAST_DEVIATION = 1e-5


def mean_and_deviation(numbers: np.ndarray, source: str, column: str) -> tuple[float, float]:
    """Mean and standard deviation of the training rows.

    Args:
        numbers: float64 [rows].
        source, column: where they are from, for messages.

    Raises:
        InputError: all numbers are equal, or differ by less than float32 can tell apart.
    """
    mean, deviation = float(numbers.mean()), float(numbers.std())
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
    """Warns of evaluation rows that cannot be correlated with anything."""
    if not np.ptp(numbers):
        console.warn(
            f"{source}: column {column!r} holds {numbers[0]:g} in every row, so correlations "
            "and R² are not defined and reported as 0"
        )
