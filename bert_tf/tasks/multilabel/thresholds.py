"""The probability from which a row has a label, by F1 on evaluation rows."""

from __future__ import annotations

import numpy as np

DEFAULT_THRESHOLD = 0.5


def best_threshold(probabilities: np.ndarray, gold: np.ndarray) -> float | None:
    """The threshold with the highest F1, midway between the probabilities it separates.

    Of several, the one nearest to 0.5. None where F1 is 0 for all, as there is no such label.

    Args:
        probabilities: float [n].
        gold: bool [n], whether the label is there.
    """
    if not gold.any():
        return None
    order = np.argsort(-probabilities, kind="stable")
    falling = probabilities[order].astype(np.float64)
    right = np.cumsum(gold[order])
    f1 = 2 * right / (np.arange(1, len(order) + 1) + gold.sum())
    following = np.append(falling[1:], 0.0)
    is_cut = np.append(falling[:-1] > falling[1:], True)
    thresholds, f1 = (falling + following)[is_cut] / 2, f1[is_cut]
    best = thresholds[f1 == f1.max()]
    return float(best[np.abs(best - DEFAULT_THRESHOLD).argmin()])


def global_threshold(probabilities: np.ndarray, gold: np.ndarray) -> float:
    """The threshold of all labels with the highest micro F1; 0.5 where no row has a label.

    Args:
        probabilities: float [rows, labels].
        gold: bool [rows, labels].
    """
    found = best_threshold(probabilities.ravel(), gold.ravel())
    return DEFAULT_THRESHOLD if found is None else found


def thresholds_by_label(probabilities: np.ndarray, gold: np.ndarray) -> tuple[float, ...]:
    """The threshold of each label with its highest F1 (SCut of Yang 2001).

    A label that no row has gets that of all labels; arguments as of `global_threshold`.
    """
    shared = global_threshold(probabilities, gold)
    found = (best_threshold(*columns) for columns in zip(probabilities.T, gold.T, strict=True))
    return tuple(shared if threshold is None else threshold for threshold in found)
