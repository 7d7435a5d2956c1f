"""Standard errors of metrics: the usual change of a metric with other evaluation rows.

- For a mean over rows (accuracy, exact match): `sqrt(var / rows)`, which for right and wrong rows
  is the binomial `sqrt(p (1 - p) / rows)`.
- For any other metric (F1, correlations): the jackknife (Efron and Stein 1981). The rows are dealt
  into groups, one for each row or at most 50, and the metric is computed without each group:
  `sqrt((groups - 1) / groups * sum((without - mean of those) ** 2))`. For smooth metrics it agrees
  with the bootstrap at a fraction of its cost, and it draws no random numbers that could differ.
- Where no row differs from another, as when all are right, both are 0, which is not credible for 20
  rows. Then one right and one wrong row are added (Agresti and Coull 1998 add two of each), and the
  error is the binomial one of `p = (right + 1) / (rows + 2)`.

Rows count as independent. Questions on one context, or near duplicates, make the error larger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

# More groups make the estimate steadier (its own relative error is about 1 / sqrt(2 groups)), and
# cost a computation of the metric each.
_GROUPS = 50
_ROUNDING = 1e-9  # of errors that are 0 but for the sums of floats


def error_of_mean(values: np.ndarray) -> float:
    """Return the standard error of the mean of a metric's values, 0 to 1 or bool, [rows]."""
    numbers = np.asarray(values, np.float64)
    error = float(numbers.std() / np.sqrt(len(numbers)))
    if error > _ROUNDING:
        return error
    return _of_equal_rows(float(numbers.mean()), len(numbers))


def jackknife_errors(
    measure: Callable[..., Mapping[str, float]], *columns: np.ndarray
) -> dict[str, float]:
    """Return standard errors of all metrics that a function computes from rows.

    Args:
        measure: computes metrics from some rows of the columns, at least one. Their scale is 0 to
            1 where rows may be alike.
        columns: arrays [rows, …].
    """
    rows = len(columns[0])
    if not rows:
        return {}
    whole = measure(*columns)
    groups = min(rows, _GROUPS)
    # Rows of a file may be sorted: a group has rows from all parts of it.
    group_of_row = np.arange(rows) % groups
    without_part: dict[str, list[float]] = {name: [] for name in whole}
    for group in range(groups if groups > 1 else 0):
        is_kept = group_of_row != group
        without = measure(*(column[is_kept] for column in columns))
        for name, values in without_part.items():
            values.append(without[name])
    errors = {}
    for name, values in without_part.items():
        error = float(np.std(values) * np.sqrt(groups - 1)) if values else 0.0
        errors[name] = error if error > _ROUNDING else _of_equal_rows(whole[name], rows)
    return errors


def _of_equal_rows(value: float, rows: int) -> float:
    """Return the error of a metric of rows that are all alike; 0 if it is no fraction."""
    if not 0.0 <= value <= 1.0:
        return 0.0
    shrunk = (value * rows + 1) / (rows + 2)
    return float(np.sqrt(shrunk * (1 - shrunk) / rows))
