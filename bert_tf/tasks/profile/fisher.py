"""Fisher's exact test for many counts at once: bounds of p-values, and numbers of rows needed."""

from __future__ import annotations

import math

import numpy as np

NEVER = 1 << 30  # number of rows that stands for "never"
_SIZES = 1000  # numbers of rows to try, from 1 to NEVER, 2% apart
_TINY = 1e-300  # avoids a division by 0


def chance_of_difference(
    new: np.ndarray, new_rows: np.ndarray, old: np.ndarray, old_rows: np.ndarray
) -> np.ndarray:
    """Return bounds of the two-sided p-value of Fisher's exact test, float64.

    The distribution is log-concave: away from its mode each probability is at most the ratio r of
    the first two times the one before, so a tail is at most its first term divided by 1 - r. Far
    out, where it matters, that is nearly exact, and needs no library.

    Args:
        new, old: int64 [tests], rows with a property.
        new_rows, old_rows: int64 [tests], all rows.
    """
    both = new + old
    rows = new_rows + old_rows
    log_term = _log_choices(new_rows, new) + _log_choices(old_rows, old) - _log_choices(rows, both)
    is_more = new * old_rows >= old * new_rows
    # Rows without the property.
    new_others = new_rows - new
    old_others = old_rows - old
    ratio = np.where(
        is_more,
        new_others * old / ((new + 1.0) * (old_others + 1.0)),
        new * old_others / ((new_others + 1.0) * (old + 1.0)),
    )
    tail = np.exp(log_term) / np.maximum(1.0 - ratio, _TINY)  # not used where the ratio is 1
    return np.where(ratio < 1.0, np.minimum(1.0, 2.0 * tail), 1.0)


def _log_factorial(number: np.ndarray) -> np.ndarray:
    """Return log(n!), float64, to eleven digits.

    Stirling's series is exact enough from 11 on, so log((n + 10)!) is computed and reduced.
    """
    shifted = number + 11.0
    product = np.ones(len(shifted))
    for step in range(1, 11):
        product *= number + float(step)
    series = 1 / (12 * shifted) - 1 / (360 * shifted**3) + 1 / (1260 * shifted**5)
    main = (shifted - 0.5) * np.log(shifted) - shifted + 0.5 * math.log(2 * math.pi)
    return main + series - np.log(product)


def _log_choices(number: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the logarithm of binomial coefficients, float64."""
    return _log_factorial(number) - _log_factorial(chosen) - _log_factorial(number - chosen)


def rows_to_see(share: float, *, known: int, known_rows: int, level: float) -> int:
    """Return the number of new rows from which a property would be reported; NEVER without one.

    Args:
        share: share of the new rows that have the property.
        known: training or evaluation rows that have it.
        known_rows: all of these rows.
        level: p-value below which a difference is reported.
    """
    rows = np.unique(np.geomspace(1, NEVER, _SIZES).astype(np.int64))
    old = np.full(len(rows), known)
    old_rows = np.full(len(rows), known_rows)
    chances = chance_of_difference(np.round(share * rows).astype(np.int64), rows, old, old_rows)
    enough = rows[chances <= level]
    return int(enough[0]) if len(enough) else NEVER
