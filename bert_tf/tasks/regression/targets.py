"""Labels that are numbers: which can be used, and what training learns of them."""

from __future__ import annotations

import re

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.data.tables.cells import shortened
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.tables import Table

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_REASON = "label is not a finite number"
# Of the largest number: float32, which models compute in, has 7 digits.
_LEAST_DEVIATION = 1e-5


def reject_other_labels(table: Table, column: str) -> Table:
    """Moves the rows whose label is no finite number of float32 to the rejects.

    Raises:
        InputError: no row is left.
    """
    rejects = {
        index: Reject(table.source, line, _REASON, shortened(label))
        for index, (label, line) in enumerate(zip(table.columns[column], table.lines, strict=True))
        if not _is_number(label)
    }
    if rejects and len(rejects) == len(table):
        raise InputError(
            f"{table.source}: column {column!r} holds no number that regression could learn; "
            f"the first row: {next(iter(rejects.values()))}; name the column with --label-column"
        )
    return table.rejecting(rejects) if rejects else table


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


def _is_number(label: str) -> bool:
    if not _NUMBER.fullmatch(label):
        return False
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.float32(float(label))))
