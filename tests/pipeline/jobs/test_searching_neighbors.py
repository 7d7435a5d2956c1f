"""Exact search against scikit-learn, in any blocks, and recall."""

import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.neighbors import NearestNeighbors

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.scoring import check_index_installed
from bert_tf.tasks.similarity.metrics import normalized
from pipeline.jobs import searching
from pipeline.jobs.searching import (
    Neighbors,
    build_index,
    exact_neighbors,
    recall,
    search_index,
)

# Small whole numbers: dot products are exact, and many are equal.
VECTORS = st.integers(1, 3).flatmap(
    lambda size: st.tuples(
        *(
            arrays.arrays(
                np.float32,
                st.tuples(st.integers(1, 12), st.just(size)),
                elements=st.integers(-2, 2).map(float),
            )
            for _ in range(2)
        )
    )
)


@given(vectors=VECTORS, k=st.integers(1, 12), block=st.integers(1, 5))
def test_neighbors_are_the_greatest_dot_products_and_of_equal_ones_the_first(vectors, k, block):
    queries, corpus = vectors
    k = min(k, len(corpus))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "_VECTORS_PER_BLOCK", block)
        patch.setattr(searching, "_QUERIES_PER_BLOCK", 2)
        found = exact_neighbors(queries, corpus, k)
    scores = queries @ corpus.T
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(found.rows, expected)
    np.testing.assert_array_equal(found.scores, np.take_along_axis(scores, expected, axis=1))


def test_cosines_equal_scikit_learn():
    random = np.random.default_rng(0)
    queries, corpus = (random.standard_normal((n, 16)).astype(np.float32) for n in (20, 300))
    found = exact_neighbors(normalized(queries), normalized(corpus), 7)
    theirs = NearestNeighbors(n_neighbors=7, metric="cosine", algorithm="brute").fit(corpus)
    distances, rows = theirs.kneighbors(queries)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.scores, 1 - distances, rtol=0, atol=1e-5)


def test_a_vector_of_zeros_has_no_direction_and_no_error():
    assert normalized(np.zeros((1, 3), np.float32)).tolist() == [[0, 0, 0]]


def test_recall_is_the_fraction_of_the_exact_rows():
    exact = Neighbors(np.array([[1, 2], [3, 4]]), np.zeros((2, 2), np.float32))
    found = Neighbors(np.array([[2, 1], [4, -1]]), np.zeros((2, 2), np.float32))
    assert recall(found, exact) == 0.75
    assert recall(exact, exact) == 1


# The approximate index: what it finds, and the same in every run.


def clustered(number: int) -> np.ndarray:
    random = np.random.default_rng(number)
    centers = np.random.default_rng(0).standard_normal((50, 32))
    noise = random.standard_normal((number, 32))
    return normalized((centers[random.integers(0, 50, number)] + noise).astype(np.float32))


@pytest.mark.slow
def test_most_neighbors_are_found_and_the_index_is_reproducible():
    pytest.importorskip("faiss", reason="Faiss is an optional package")
    corpus, queries = clustered(6000), clustered(40)
    added = []
    index = build_index(corpus, on_vectors=added.append)
    assert sum(added) == 6000
    found = search_index(index, queries, 10)
    assert recall(found, exact_neighbors(queries, corpus, 10)) > 0.95
    again = search_index(build_index(corpus), queries, 10)
    np.testing.assert_array_equal(found.rows, again.rows)
    np.testing.assert_array_equal(found.scores, again.scores)


def test_without_faiss_it_is_one_line(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs faiss, .*\[search\]', or take --index exact"):
        check_index_installed()
