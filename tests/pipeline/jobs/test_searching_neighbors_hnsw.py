"""The approximate index: what it finds, and the same in every run."""

import importlib.util

import numpy as np
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.scoring import check_index_installed
from bert_tf.tasks.similarity.metrics import normalized
from pipeline.jobs.searching import (
    build_index,
    exact_neighbors,
    recall,
    search_index,
)


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
