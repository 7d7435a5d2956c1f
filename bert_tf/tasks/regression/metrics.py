"""Measures of predicted numbers, by the definitions of SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np

from bert_tf.tasks.tables.correlations import pearson, spearman


def regression_metrics(gold: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Pearson and Spearman correlation, R², mean and root mean squared error, mean absolute error.

    Where either side is the same in every row, correlations are not defined and given as 0; so is
    R² where the gold numbers are (scikit-learn `r2_score(force_finite=True)`, unless all are
    predicted exactly).

    Args:
        gold, predicted: float [rows], at least one row.
    """
    gold, predicted = gold.astype(np.float64), predicted.astype(np.float64)
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
