"""Measures of vectors by the definitions of sentence-transformers' evaluators, query by query."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from bert_tf.tasks.similarity import metrics
from bert_tf.tasks.similarity.metrics import cosent, retrieval, score_metrics


def brute_force(vectors, text_ids, scale):
    """Return the metrics of `InformationRetrievalEvaluator`, and the loss of each row."""
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    queries = {}
    documents = {}
    relevant = {}
    for row, (anchor, *others) in enumerate(text_ids.tolist()):
        queries.setdefault(anchor, unit[row, 0])
        relevant.setdefault(anchor, set()).add(others[0])
        for place, text in enumerate(others, start=1):
            documents.setdefault(text, unit[row, place])
    mrr = []
    recall = {1: [], 10: []}
    ranks = {}
    for query, vector in queries.items():
        scores = {text: float(vector @ document) for text, document in documents.items()}
        hits = sorted(scores, key=scores.get, reverse=True)
        first = next((n for n, text in enumerate(hits[:10], 1) if text in relevant[query]), None)
        mrr.append(1 / first if first else 0.0)
        for k, values in recall.items():
            found = sum(text in relevant[query] for text in hits[:k])
            values.append(found / len(relevant[query]))
        ranks.update({(query, text): 1 + hits.index(text) for text in relevant[query]})
    losses = []
    for row, anchor in enumerate(text_ids[:, 0].tolist()):
        right = math.exp(scale * float(unit[row, 0] @ unit[row, 1]))
        wrong = sum(
            math.exp(scale * float(unit[row, 0] @ document))
            for text, document in documents.items()
            if text != anchor and text not in relevant[anchor]
        )
        losses.append(math.log((right + wrong) / right))
    expected = {"mrr@10": np.mean(mrr)} | {f"recall@{k}": np.mean(v) for k, v in recall.items()}
    return expected, [ranks[anchor, positive] for anchor, positive, *_ in text_ids.tolist()], losses


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 30),
    texts=st.integers(2, 4),
    distinct=st.integers(2, 100),
)
def test_retrieval_equals_the_definitions_in_blocks_of_any_size(seed, rows, texts, distinct):
    random = np.random.default_rng(seed)
    text_ids = random.integers(0, distinct, (rows, texts))
    vectors = random.normal(size=(distinct, 6)).astype(np.float32)[text_ids]
    expected, ranks, losses = brute_force(vectors.astype(np.float64), text_ids, 20.0)
    whole = metrics._BLOCK_SCORES
    try:
        for metrics._BLOCK_SCORES in (whole, 50):
            found = retrieval(vectors, text_ids, scale=20.0)
            assert found.ranks.tolist() == ranks
            np.testing.assert_allclose(found.losses, losses, rtol=1e-4, atol=1e-5)
            assert found.metrics == pytest.approx(expected)
    finally:
        metrics._BLOCK_SCORES = whole


def test_texts_as_near_as_the_positive_rank_before_it():
    same = np.ones((3, 2, 4), np.float32)
    found = retrieval(same, np.array([[0, 1], [2, 3], [4, 5]]), scale=20.0)
    assert found.ranks.tolist() == [3, 3, 3]
    np.testing.assert_allclose(found.losses, math.log(3), rtol=1e-6)


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 6))
def test_cosent_of_all_rows_is_its_definition(seed, rows, levels):
    random = np.random.default_rng(seed)
    scores = random.integers(0, levels, rows) / 2
    similarities = random.uniform(-1, 1, rows)
    total = 1 + sum(
        math.exp(20 * (similarities[low] - similarities[high]))
        for low in range(rows)
        for high in range(rows)
        if scores[low] < scores[high]
    )
    assert cosent(scores, similarities, scale=20.0) == pytest.approx(math.log(total))


def test_correlations_are_those_of_scipy():
    random = np.random.default_rng(8)
    scores, similarities = random.integers(0, 5, 50), random.uniform(-1, 1, 50)
    found = score_metrics(scores, similarities)
    assert found["spearman"] == pytest.approx(spearmanr(scores, similarities).statistic)
    assert found["pearson"] == pytest.approx(pearsonr(scores, similarities).statistic)
    assert score_metrics(np.ones(50), similarities) == {"spearman": 0.0, "pearson": 0.0}
