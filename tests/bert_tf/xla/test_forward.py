"""Forms for XLA against the plain layers."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.layers.activation import activation
from bert_tf.layers.cross_entropy import cross_entropy
from bert_tf.layers.dropout import StatelessDropout
from bert_tf.layers.layer_norm import LayerNorm
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.xla.forward import XlaForward
from bert_tf.xla.residual_norm import normalized_sum

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


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_normalized_sums_and_gradients_are_those_of_the_plain_layer(rate, is_compiled):
    """Compiled, too, since only then there are barriers."""
    random = np.random.default_rng(1)
    shape = (3, 5, 8)
    hidden, change = (tf.constant(random.normal(size=shape), tf.float32) for _ in range(2))
    norm, dropout = LayerNorm(epsilon=1e-12), StatelessDropout(rate, stream=1)
    norm.build(shape)
    norm.gamma.assign(random.normal(size=8))
    norm.beta.assign(random.normal(size=8))
    key = tf.constant([1, 2])

    def found(hidden, change):
        with tf.GradientTape() as of_weights:
            numbers = values_and_gradients(
                lambda *each: normalized_sum(norm, *each, dropout, key), hidden, change
            )
            loss = tf.reduce_sum(numbers[0] ** 2)
        return [*numbers, *of_weights.gradient(loss, [norm.gamma.value, norm.beta.value])]

    def expected(hidden, change):
        with tf.GradientTape() as of_weights:
            numbers = values_and_gradients(
                lambda *each: norm.of_sum(*each, dropout, key), hidden, change
            )
            loss = tf.reduce_sum(numbers[0] ** 2)
        return [*numbers, *of_weights.gradient(loss, [norm.gamma.value, norm.beta.value])]

    if is_compiled:
        found = tf.function(found, autograph=False, jit_compile=True)
    for mine, theirs in zip(found(hidden, change), expected(hidden, change), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-4)


def test_what_is_stored_of_a_normalized_sum_has_the_dtype_of_its_terms():
    """XLA would keep 32 bits between two roundings, but for a barrier."""
    policy = "mixed_bfloat16"
    norm, dropout = LayerNorm(epsilon=1e-12, dtype=policy), StatelessDropout(0.0, stream=1)
    norm.build((2, 3, 8))
    hidden = tf.zeros((2, 3, 8), tf.bfloat16)

    @tf.function(autograph=False, jit_compile=True)
    def step(hidden):
        return values_and_gradients(
            lambda *each: normalized_sum(norm, *each, dropout, None), hidden, hidden
        )

    program = step.experimental_get_compiler_ir(hidden)(stage="hlo")
    kept = [line for line in program.splitlines() if " opt-barrier(" in line]
    assert len(kept) == 4, "the sum and the result, and for the gradient what it reads and writes"
    large = re.findall(r"(\w+)\[2,3,8\]", "".join(kept))
    assert set(large) == {"bf16"}


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
