"""An approximate index: Faiss' hierarchical navigable small worlds (Malkov and Yashunin 2016)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pipeline.retrieval.neighbors import Neighbors

_LINKS = 32  # of a vector
_BUILD_CANDIDATES = 80
_LEAST_SEARCH_CANDIDATES = 128
_VECTORS_PER_CALL = 4096


def build_index(corpus: np.ndarray, *, on_vectors: Callable[[int], None] | None = None) -> Any:
    """An index of the vectors, the same in every run, since one thread adds them in order.

    Args:
        corpus: float32 [rows, dimensions].
        on_vectors: called with the number of vectors after each part of them.
    """
    import faiss

    index = faiss.IndexHNSWFlat(corpus.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = _BUILD_CANDIDATES
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        for begin in range(0, len(corpus), _VECTORS_PER_CALL):
            part = np.ascontiguousarray(corpus[begin : begin + _VECTORS_PER_CALL])
            index.add(part)
            if on_vectors is not None:
                on_vectors(len(part))
    finally:
        faiss.omp_set_num_threads(threads)
    return index


def search_index(index: Any, queries: np.ndarray, k: int) -> Neighbors:
    """The neighbors that the index finds, about the k nearest.

    Args:
        index: of `build_index`.
        queries: float32 [queries, dimensions].
        k: how many.
    """
    index.hnsw.efSearch = max(_LEAST_SEARCH_CANDIDATES, 2 * k)
    scores, rows = index.search(np.ascontiguousarray(queries), k)
    return Neighbors(rows, scores)
