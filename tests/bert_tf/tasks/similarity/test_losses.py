"""The losses of sentence embeddings by their closed forms, row by row."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.tasks.base.task import cross_entropy
from bert_tf.tasks.similarity.losses import cosent_loss, ranking_logits, triplet_distances


def cosine(first, second):
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def rank_losses(vectors, text_ids, is_row, scale):
    """Return the loss of each row, from the candidates of a batch without duplicates."""
    matches = {
        (ids[0], ids[1]) for ids, there in zip(text_ids.tolist(), is_row, strict=True) if there
    }
    candidates = {}
    for row, ids in enumerate(text_ids.tolist()):
        for place, text in enumerate(ids[1:], start=1):
            if is_row[row]:
                candidates.setdefault(text, vectors[row, place])
    losses = []
    for row, (anchor, positive, *_) in enumerate(text_ids.tolist()):
        right = math.exp(scale * cosine(vectors[row, 0], vectors[row, 1]))
        wrong = sum(
            math.exp(scale * cosine(vectors[row, 0], vector))
            for text, vector in candidates.items()
            if text not in (anchor, positive) and (anchor, text) not in matches
        )
        losses.append(-math.log(right / (right + wrong)))
    return losses


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 7),
    texts=st.integers(2, 4),
    distinct=st.integers(2, 30),
    scale=st.sampled_from([1.0, 20.0]),
)
def test_ranking_loss_has_the_candidates_of_a_batch_without_duplicates(
    seed, rows, texts, distinct, scale
):
    random = np.random.default_rng(seed)
    text_ids = random.integers(0, distinct, (rows, texts)).astype(np.int32)
    by_text = random.normal(size=(distinct, 5)).astype(np.float32)
    is_row = random.random(rows) < 0.8
    is_row[0] = True
    vectors = by_text[text_ids]
    vectors[~is_row] = 0
    text_ids[~is_row] = 0
    logits = ranking_logits(
        tf.constant(vectors), tf.constant(text_ids), tf.constant(is_row), scale=scale
    )
    found = cross_entropy(logits, tf.range(rows)).numpy()
    vectors[~is_row] = 1  # no number
    expected = rank_losses(vectors, text_ids, is_row, scale)
    assert logits.shape == (rows, rows * (texts - 1))
    for loss, other, there in zip(found, expected, is_row, strict=True):
        assert np.isfinite(loss)
        if there:
            assert loss == pytest.approx(other, rel=1e-4, abs=1e-5)


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 4))
def test_cosent_is_over_all_pairs_with_different_scores(seed, rows, levels):
    random = np.random.default_rng(seed)
    scores = random.integers(0, levels, rows).astype(np.float32)
    similarities = random.uniform(-1, 1, rows).astype(np.float32)
    is_row = random.random(rows) < 0.8
    chosen = np.flatnonzero(is_row)
    total = 1 + sum(
        math.exp(20 * (float(similarities[low]) - float(similarities[high])))
        for low in chosen
        for high in chosen
        if scores[low] < scores[high]
    )
    found = cosent_loss(
        tf.constant(similarities), tf.constant(scores), tf.constant(is_row), scale=20.0
    )
    assert float(found) == pytest.approx(math.log(total), rel=1e-5, abs=1e-5)


def test_triplet_distances_and_their_gradients_where_texts_are_equal():
    random = np.random.default_rng(3)
    vectors = random.normal(size=(4, 3, 6)).astype(np.float32)
    vectors[0, 1] = vectors[0, 0]
    for name, between in (
        ("euclidean", lambda a, b: np.linalg.norm(a - b)),
        ("cosine", lambda a, b: 1 - cosine(a, b)),
    ):
        values = tf.constant(vectors)
        with tf.GradientTape() as tape:
            tape.watch(values)
            positive, negative = triplet_distances(values, name)
            loss = tf.reduce_sum(tf.nn.relu(positive - negative + 5.0))
        expected = [[between(row[0], row[other]) for row in vectors] for other in (1, 2)]
        np.testing.assert_allclose([positive, negative], expected, rtol=1e-5, atol=1e-6)
        assert np.isfinite(tape.gradient(loss, values)).all()
