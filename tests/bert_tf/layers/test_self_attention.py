"""Attention against Keras' own layer; masked positions are hidden."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from behavior.layers import POLICIES, check_layer, check_masked_positions
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.layers.self_attention import SelfAttention, attention_bias, gather_positions

BATCH = 2
LENGTH = 5
HIDDEN = 8
HEADS = 2
ARGUMENTS = {
    "num_heads": HEADS,
    "dropout_rate": 0.1,
    "dropout_stream": 0,
    "initializer_range": 0.5,
}


def make_layer(dtype="float32"):
    layer = SelfAttention(**ARGUMENTS, dtype=dtype)
    layer.build((None, None, HIDDEN))
    generator = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(generator.normal(size=weight.shape))
    return layer


@pytest.fixture
def hidden():
    return np.random.default_rng(1).normal(size=(BATCH, LENGTH, HIDDEN)).astype(np.float32)


def keras_attention(layer):
    """Keras' multi-head attention with the same weights."""
    head_size = HIDDEN // HEADS
    reference = keras.layers.MultiHeadAttention(HEADS, head_size)
    reference.build((None, None, HIDDEN), (None, None, HIDDEN))
    kernels = np.split(layer.query_key_value.kernel.numpy(), 3, axis=1)
    biases = np.split(layer.query_key_value.bias.numpy(), 3)
    parts = ("query", "key", "value")
    for name, kernel, bias in zip(parts, kernels, biases, strict=True):
        dense = getattr(reference, f"_{name}_dense")
        dense.kernel.assign(kernel.reshape(HIDDEN, HEADS, head_size))
        dense.bias.assign(bias.reshape(HEADS, head_size))
    output = layer.output_projection
    reference._output_dense.kernel.assign(output.kernel.numpy().reshape(HEADS, head_size, HIDDEN))
    reference._output_dense.bias.assign(output.bias)
    return reference


@pytest.mark.parametrize("mask_rank", [None, 2, 3])
def test_equals_keras_multi_head_attention(hidden, mask_rank):
    layer = make_layer()
    mask = None
    if mask_rank is not None:
        shape = (BATCH, LENGTH) if mask_rank == 2 else (BATCH, LENGTH, LENGTH)
        mask = np.random.default_rng(2).random(shape) < 0.6
        mask[..., 0] = True
    ours = layer(hidden, attention_bias=None if mask is None else attention_bias(mask))
    keras_mask = mask[:, None, :] if mask_rank == 2 else mask
    theirs = keras_attention(layer)(hidden, hidden, attention_mask=keras_mask)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_layer(hidden):
    check_layer(SelfAttention, ARGUMENTS, (hidden,), shape=hidden.shape)


@pytest.mark.parametrize("policy", POLICIES)
def test_masked_keys_have_no_influence(hidden, policy):
    check_masked_positions(make_layer(policy), hidden, bias_of=attention_bias, visible=3)


def test_softmax_survives_scores_beyond_float16():
    layer = make_layer("mixed_float16")
    for weight in layer.weights:
        weight.assign(np.full(weight.shape, 3.0))
    inputs = tf.fill([1, LENGTH, HIDDEN], tf.constant(5.0, tf.float16))
    outputs = layer(inputs, attention_bias=attention_bias(np.ones((1, LENGTH))))
    assert np.isfinite(tf.cast(outputs, tf.float32)).all()


# Tokens picked from rows, against NumPy.


@given(
    batch=st.integers(1, 4),
    length=st.integers(1, 6),
    predictions=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
@fewer_examples(0.25)
def test_gathering_equals_numpy(batch, length, predictions, seed):
    generator = np.random.default_rng(seed)
    hidden = generator.normal(size=(batch, length, 3)).astype(np.float32)
    positions = generator.integers(0, length, (batch, predictions))
    expected = np.take_along_axis(hidden, positions[:, :, None], axis=1)
    np.testing.assert_array_equal(gather_positions(hidden, positions), expected)
