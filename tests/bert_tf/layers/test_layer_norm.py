"""LayerNorm against Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.layers import check_layer

from bert_tf.layers.dropout import StatelessDropout
from bert_tf.layers.layer_norm import LayerNorm


def test_layer():
    inputs = np.random.default_rng(0).normal(size=(4, 3, 16))
    check_layer(LayerNorm, {"epsilon": 1e-12}, (inputs,), shape=(4, 3, 16))


@pytest.mark.parametrize(
    ("policy", "tolerance"), [("float64", 1e-12), ("float32", 1e-5), ("mixed_bfloat16", 2e-2)]
)
def test_equals_keras(policy, tolerance):
    generator = np.random.default_rng(0)
    ours = LayerNorm(epsilon=1e-12, dtype=policy)
    theirs = keras.layers.LayerNormalization(epsilon=1e-12, dtype=policy)
    for layer in (ours, theirs):
        layer.build((None, 16))
    for weight in ours.weights:
        weight.assign(generator.normal(size=16))
    theirs.gamma.assign(ours.gamma)
    theirs.beta.assign(ours.beta)
    inputs = tf.cast(generator.normal(3.0, 2.0, size=(4, 16)), ours.compute_dtype)
    outputs = ours(inputs)
    assert outputs.dtype == ours.compute_dtype
    np.testing.assert_allclose(
        tf.cast(outputs, tf.float64), tf.cast(theirs(inputs), tf.float64), atol=tolerance
    )


@pytest.mark.parametrize("shape", [(4, 16), (2, 3, 16)])
def test_gradients_equal_those_of_keras(shape):
    generator = np.random.default_rng(1)
    ours = LayerNorm(epsilon=1e-3, dtype="float64")
    theirs = keras.layers.LayerNormalization(epsilon=1e-3, dtype="float64")
    inputs = tf.constant(generator.normal(3.0, 2.0, size=shape))
    upstream = generator.normal(size=shape)
    gradients = []
    for layer in (ours, theirs):
        layer.build(shape)
        layer.gamma.assign(np.linspace(-1.0, 2.0, 16))
        layer.beta.assign(np.linspace(1.0, 0.0, 16))
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(layer(inputs) * upstream)
        gradients.append(tape.gradient(loss, [inputs, layer.gamma.value, layer.beta.value]))
    for mine, others in zip(*gradients, strict=True):
        np.testing.assert_allclose(mine, others, atol=1e-12)


def test_a_large_common_offset_costs_no_precision():
    values = np.random.default_rng(0).normal(size=(4, 64))
    exact = (values - values.mean(-1, keepdims=True)) / values.std(-1, keepdims=True)
    offset = np.float32(values) + np.float32(1000)
    outputs = LayerNorm(epsilon=1e-12)(offset)
    np.testing.assert_allclose(outputs, exact, atol=3e-4)


@pytest.mark.parametrize("key", [None, [1, 2]])
def test_the_norm_of_a_sum_is_rounded_once(key):
    generator = np.random.default_rng(0)
    norm = LayerNorm(epsilon=1e-12, dtype="mixed_bfloat16")
    norm.build((None, 64))
    dropout = StatelessDropout(0.1, stream=0, dtype="float64")
    hidden, change = (tf.cast(generator.normal(size=(8, 64)), tf.bfloat16) for _ in range(2))
    total = tf.cast(hidden, tf.float64) + dropout(tf.cast(change, tf.float64), dropout_key=key)
    exact = keras.layers.LayerNormalization(epsilon=1e-12, dtype="float64")(total)
    outputs = tf.cast(norm.of_sum(hidden, change, dropout, key), tf.float64)
    # Half a step between two neighboring numbers of 8 significant bits, and float32's own error.
    np.testing.assert_allclose(outputs, exact, rtol=2.0**-8, atol=1e-6)
