"""Maximal marginal relevance by its definition, sentence by sentence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedding.summarizer import select_sentences


def brute_force(vectors, count, mmr_lambda):
    """Return the formula of Carbonell and Goldstein 1998, over all candidates at every step."""
    unit = [vector / np.linalg.norm(vector) for vector in vectors.astype(np.float64)]
    document = np.mean(unit, axis=0)
    document /= np.linalg.norm(document)
    chosen = []
    while len(chosen) < min(count, len(unit)):
        scores = {}
        for number, vector in enumerate(unit):
            if number not in chosen:
                repeated = max((float(vector @ unit[other]) for other in chosen), default=0.0)
                score = mmr_lambda * float(vector @ document) - (1 - mmr_lambda) * repeated
                scores[number] = round(score, 6)
        chosen.append(max(scores, key=scores.get))
    return chosen, [float(vector @ document) for vector in unit]


@given(
    seed=st.integers(0, 100_000),
    sentences=st.integers(1, 12),
    count=st.integers(1, 12),
    mmr_lambda=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
)
def test_it_is_the_definition(seed, sentences, count, mmr_lambda):
    vectors = np.random.default_rng(seed).normal(size=(sentences, 5)).astype(np.float32)
    chosen, relevance = select_sentences(vectors, count, mmr_lambda=mmr_lambda)
    expected, similarities = brute_force(vectors, count, mmr_lambda)
    np.testing.assert_allclose(relevance, similarities, atol=1e-12)
    assert chosen.tolist() == expected


def test_the_first_of_equals_is_chosen():
    for seed in range(20):
        vectors = np.random.default_rng(seed).normal(size=(2, 384)).astype(np.float32)
        assert select_sentences(vectors, 2, mmr_lambda=0.7)[0].tolist() == [0, 1]


def test_what_is_said_twice_is_chosen_once():
    vectors = np.array([[1, 0, 0], [1, 0, 0], [0.6, 0.8, 0], [0, 0.1, 1]], np.float32)
    assert select_sentences(vectors, 2, mmr_lambda=1.0)[0].tolist() == [0, 1]
    varied = select_sentences(vectors, 3, mmr_lambda=0.3)[0].tolist()
    assert not {0, 1} <= set(varied)


def test_a_sentence_without_direction_is_no_fault():
    chosen, relevance = select_sentences(np.zeros((2, 3), np.float32), 2, mmr_lambda=0.5)
    assert chosen.tolist() == [0, 1]
    assert relevance == pytest.approx([0, 0])
