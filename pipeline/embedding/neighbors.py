"""The nearest vectors of a corpus, by exact search or an index."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

_QUERIES_PER_BLOCK = 256
_VECTORS_PER_BLOCK = 1 << 16
NONE = -1


@dataclasses.dataclass(frozen=True)
class Neighbors:
    """The nearest vectors of each query, the nearest first."""

    # int64 [queries, k], rows of the corpus; `NONE` where an index found fewer than k
    rows: np.ndarray
    scores: np.ndarray  # float32 [queries, k], dot products


def exact_neighbors(
    queries: np.ndarray,
    corpus: np.ndarray,
    k: int,
    *,
    on_queries: Callable[[int], None] | None = None,
) -> Neighbors:
    """Returns the k vectors with the greatest dot products; among equals, those of the first rows.

    Takes float32 [queries, dimensions] and [rows, dimensions] with at least k rows. Calls
    `on_queries` with the number of queries after each block of them.
    """
    parts = []
    for begin in range(0, len(queries), _QUERIES_PER_BLOCK):
        chosen = queries[begin : begin + _QUERIES_PER_BLOCK]
        parts.append(_search_block(chosen, corpus, k))
        if on_queries is not None:
            on_queries(len(chosen))
    return Neighbors(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.scores for part in parts]),
    )


def recall(found: Neighbors, exact: Neighbors) -> float:
    """The mean fraction of the exact neighbors that were found (recall@k)."""
    shared = (exact.rows[:, :, None] == found.rows[:, None, :]).any(axis=2)
    return float(shared.mean())


def _search_block(queries: np.ndarray, corpus: np.ndarray, k: int) -> Neighbors:
    rows: np.ndarray = np.zeros((len(queries), 0), np.int64)
    scores: np.ndarray = np.zeros((len(queries), 0), np.float32)
    for begin in range(0, len(corpus), _VECTORS_PER_BLOCK):
        found, columns = _greatest(queries @ corpus[begin : begin + _VECTORS_PER_BLOCK].T, k)
        rows = np.concatenate([rows, columns + begin], axis=1)
        scores, kept = _greatest(np.concatenate([scores, found], axis=1), k)
        rows = np.take_along_axis(rows, kept, axis=1)
    return Neighbors(rows, scores)


def _greatest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k greatest of each row and their columns, in descending order; equal ones from left."""
    with tf.device("CPU"):
        found = tf.math.top_k(scores, min(k, scores.shape[1]), index_type=tf.int64)
    return found.values.numpy(), found.indices.numpy()


_LINKS = 32  # of a vector
_BUILD_CANDIDATES = 80
_LEAST_SEARCH_CANDIDATES = 128
_VECTORS_PER_CALL = 4096


def build_index(corpus: np.ndarray, *, on_vectors: Callable[[int], None] | None = None) -> Any:
    """Builds an index of float32 [rows, dimensions], by one thread, so that it is deterministic."""
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
    """Approximates the k nearest neighbors of float32 [queries, dimensions]."""
    index.hnsw.efSearch = max(_LEAST_SEARCH_CANDIDATES, 2 * k)
    scores, rows = index.search(np.ascontiguousarray(queries), k)
    return Neighbors(rows, scores)
