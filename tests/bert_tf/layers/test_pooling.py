"""Pooling by its definition, and its gradients where a row has no token."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.layers.pooling import combine_layers, pool_tokens, unit_vectors

STATES = np.random.default_rng(5).normal(size=(3, 4, 2)).astype(np.float32)
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], np.int32)


@pytest.mark.parametrize(
    ("pooling", "of_row"),
    [("mean", lambda row: row.mean(axis=0)), ("max", lambda row: row.max(axis=0))],
)
def test_padding_is_no_part_of_a_vector(pooling, of_row):
    found = np.asarray(pool_tokens(STATES, MASK, pooling))
    np.testing.assert_allclose(found[0], of_row(STATES[0]), rtol=1e-6)
    np.testing.assert_allclose(found[1], of_row(STATES[1, :2]), rtol=1e-6)
    assert found[2].tolist() == [0, 0]


def test_cls_is_the_first_token():
    np.testing.assert_array_equal(pool_tokens(STATES, MASK, "cls"), STATES[:, 0])


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_gradients_of_unit_vectors_are_finite_for_padding_alone(pooling):
    states = tf.constant(STATES) * tf.cast(MASK, tf.float32)[:, :, None]
    with tf.GradientTape() as tape:
        tape.watch(states)
        vectors = unit_vectors(pool_tokens(states, tf.constant(MASK), pooling))
        loss = tf.reduce_sum(vectors[:, 0])
    assert np.isfinite(vectors).all()
    assert np.isfinite(tape.gradient(loss, states)).all()
    norms = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(norms, [1, 1, 0], atol=1e-6)


def test_layers_are_joined_or_averaged():
    layers = [STATES, 3 * STATES]
    np.testing.assert_allclose(combine_layers(layers, "mean"), 2 * STATES, rtol=1e-6)
    np.testing.assert_array_equal(combine_layers(layers, "concat"), np.concatenate(layers, axis=-1))
