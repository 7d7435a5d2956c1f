"""Correlations of two columns of numbers, by the definitions of SciPy.

Where either column is the same in every row they are not defined and given as 0.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata


def pearson(first: np.ndarray, second: np.ndarray) -> float:
    """Correlation of float [rows] and float [rows], at least one row."""
    if not np.ptp(first) or not np.ptp(second):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Correlation of their ranks; equal numbers share the mean of their ranks."""
    return pearson(rankdata(first), rankdata(second))
