"""Measures of choices, as fractions of 1."""

from __future__ import annotations

import numpy as np


def choice_metrics(
    right: np.ndarray, chosen: np.ndarray, probabilities: np.ndarray, counts: np.ndarray
) -> dict[str, float]:
    """Accuracy, and the mean of 1 / rank of the right choice.

    A choice ranks after all that are as likely (scikit-learn
    `label_ranking_average_precision_score` with one relevant label per row).

    Args:
        right: int [rows], number of the right choice.
        chosen: int [rows], the predicted one.
        probabilities: float [rows, choices], of which the first `counts` of each row are there.
        counts: int [rows].
    """
    is_there = np.arange(probabilities.shape[1]) < counts[:, None]
    of_right = np.take_along_axis(probabilities, right[:, None], axis=1)
    ranks = ((probabilities >= of_right) & is_there).sum(axis=1)
    return {
        "accuracy": float((right == chosen).mean()),
        "mean_reciprocal_rank": float((1 / ranks).mean()),
    }
