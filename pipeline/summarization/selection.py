"""Which sentences represent a document: maximal marginal relevance."""

from __future__ import annotations

import numpy as np

_SMALLEST_NORM = 1e-12
_DIGITS = 6  # two sentences are as similar to their mean, but for rounding


def select_sentences(
    vectors: np.ndarray, count: int, *, mmr_lambda: float
) -> tuple[np.ndarray, np.ndarray]:
    """Chooses sentences one at a time (Carbonell and Goldstein 1998, "The Use of MMR").

    Each has the highest `lambda * cos(s, document) - (1 - lambda) * max cos(s, chosen)`, of those
    equal to 6 decimals the first; nothing is subtracted for the first one. The document's vector is
    the mean of its sentences' unit vectors (their centroid), so that no part of a long text is left
    out.

    Args:
        vectors: float [sentences, hidden], at least one.
        count: sentences to choose, at most all.
        mmr_lambda: 1 takes the most similar ones, lower values spread over the document.

    Returns:
        Their numbers in the order of choice, int64 [count]; and the cosine of every sentence with
        the document, float64 [sentences].
    """
    unit = _normalized(vectors.astype(np.float64))
    relevance = unit @ _normalized(unit.mean(axis=0))
    value = mmr_lambda * relevance
    redundancy = np.full(len(unit), -np.inf)
    is_left = np.ones(len(unit), bool)
    chosen = np.empty(min(count, len(unit)), np.int64)
    for place in range(len(chosen)):
        scores = value if place == 0 else value - (1 - mmr_lambda) * redundancy
        best = int(np.argmax(np.where(is_left, np.round(scores, _DIGITS), -np.inf)))
        chosen[place] = best
        is_left[best] = False
        np.maximum(redundancy, unit @ unit[best], out=redundancy)
    return chosen, relevance


def _normalized(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, _SMALLEST_NORM)
