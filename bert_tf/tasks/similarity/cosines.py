"""Cosines of vectors, in NumPy."""

from __future__ import annotations

import numpy as np

_SMALLEST_NORM = 1e-12


def similarities_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosines of float [..., hidden] with float [..., hidden], float64 [...]."""
    return np.einsum(
        "...h,...h->...",
        normalized(first.astype(np.float64)),
        normalized(second.astype(np.float64)),
    )


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Vectors [..., hidden] divided by their Euclidean norm, which is at least 1e-12."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, _SMALLEST_NORM)
