"""Forms for XLA against the plain layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.layers.activation import activation
from bert_tf.layers.cross_entropy import cross_entropy
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.xla.forward import XlaForward

FORM = XlaForward()


def values_and_gradients(function, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        values = function(*inputs)
        # Another weight for every number.
        flat = tf.reshape(tf.cast(values, tf.float32), [-1])
        loss = tf.reduce_sum(flat * tf.sin(tf.range(tf.cast(tf.size(flat), tf.float32))))
    return [values, *tape.gradient(loss, inputs)]


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "tanh", None])
def test_activations_and_gradients_are_those_of_the_plain_layers(name):
    random = np.random.default_rng(1)
    products = tf.constant(3 * random.normal(size=(40, 7)), tf.float32)
    bias = tf.constant(random.normal(size=7), tf.float32)
    found = values_and_gradients(lambda *each: FORM.activate(name, *each), products, bias)
    expected = values_and_gradients(lambda *each: activation(name, *each), products, bias)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_losses_and_gradients_are_those_of_the_plain_form():
    random = np.random.default_rng(1)
    logits = tf.constant(4 * random.normal(size=(2, 5, 9)), tf.float32)
    labels = tf.constant(random.integers(0, 9, (2, 5)), tf.int32)
    found = values_and_gradients(lambda each: FORM.cross_entropy(each, labels)[0], logits)
    expected = values_and_gradients(lambda each: cross_entropy(each, labels)[0], logits)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(
        FORM.cross_entropy(logits, labels)[1],
        tf.argmax(logits, axis=-1) == tf.cast(labels, "int64"),
    )


def test_entries_that_fill_the_vocabulary_up_have_no_probability():
    keras.utils.set_random_seed(1)
    config = BertConfig(vocab_size=30, hidden_size=8, intermediate_size=8, num_attention_heads=2)
    head = MaskedLMHead(config)
    head.build()
    hidden, table = (tf.random.stateless_normal(shape, (1, 2)) for shape in ([2, 3, 8], [30, 8]))
    logits = FORM.masked_lm_logits(head, hidden, table)
    assert logits.shape == (2, 3, 128)
    np.testing.assert_allclose(logits[:, :, :30], head(hidden, table), rtol=1e-5, atol=1e-5)
    assert not np.asarray(tf.nn.softmax(logits))[:, :, 30:].any()
