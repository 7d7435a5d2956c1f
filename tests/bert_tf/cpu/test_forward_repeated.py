"""Blocks traced once: the same numbers from a graph with one block in it."""

import numpy as np
import pytest
import tensorflow as tf
from behavior.rounding import assert_same_but_for_rounding

from bert_tf.config.bert import BertConfig
from bert_tf.cpu.backend import without_graph_rewrites
from bert_tf.cpu.forward import Forward, PassInputs
from bert_tf.layers.implementation import computing_by
from bert_tf.models.encoder import BertEncoder

CONFIG = BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=8,
    hidden_dropout_prob=0.2,
)


def made_encoder(policy):
    encoder = BertEncoder(CONFIG, dtype=policy)
    encoder.build_weights()
    random = np.random.default_rng(1)
    for variable in encoder.variables:
        if variable.dtype == "float32":
            variable.assign(random.normal(size=variable.shape) / 2)
    return encoder


def traced(encoder, forward, *, training=True):
    """Return a graph of the outputs, and of the gradients of all weights."""

    @tf.function(autograph=False)
    def outputs_and_gradients(ids, mask, key):
        variables = [variable.value for variable in encoder.trainable_variables]
        with tf.GradientTape() as tape:
            outputs = encoder(
                ids, attention_mask=mask, training=training, dropout_key=key, pooled_only=True
            )["pooled_output"]
            loss = tf.reduce_sum(tf.square(tf.cast(outputs, tf.float32)))
        return outputs, tape.gradient(loss, variables)

    arguments = (
        tf.TensorSpec([None, None], tf.int32),
        tf.TensorSpec([None, None], tf.int32),
        tf.TensorSpec([2], tf.int32),
    )
    with computing_by(forward):
        return outputs_and_gradients.get_concrete_function(*arguments)


def numbers(graph, seed):
    random = np.random.default_rng(seed)
    ids = random.integers(0, 20, (3, 6)).astype(np.int32)
    mask = (np.arange(6) < [[6], [4], [1]]).astype(np.int32)
    key = random.integers(0, 2**31, 2).astype(np.int32)
    with without_graph_rewrites():
        outputs, gradients = graph(tf.constant(ids), tf.constant(mask), tf.constant(key))
    return [np.asarray(tf.convert_to_tensor(value)) for value in (outputs, *gradients)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "training", "frozen"),
    [
        ("float32", True, 0),
        ("float32", False, 0),
        ("float32", True, 1),
        ("mixed_bfloat16", True, 0),
    ],
)
def test_outputs_and_gradients_are_those_of_blocks_traced_each(policy, training, frozen):
    """There and back, in each block four products, attention's two and about ten operations."""
    precision, steps = {"float32": ("float32", 64), "mixed_bfloat16": ("bfloat16", 16)}[policy]
    roundings = 2 * CONFIG.num_hidden_layers * steps
    encoder = made_encoder(policy)
    if frozen:
        encoder.freeze(frozen)
    each = traced(encoder, Forward(), training=training)
    once = traced(encoder, Forward(traces_once=True), training=training)
    for seed in range(3):
        for mine, expected in zip(numbers(once, seed), numbers(each, seed), strict=True):
            assert_same_but_for_rounding(mine, expected, roundings=roundings, dtype=precision)


@pytest.mark.parametrize(
    "policy", ["float32", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)]
)
def test_one_graph_fits_all_blocks(policy):
    encoder = made_encoder(policy)
    forward = Forward(traces_once=True)
    traced(encoder, forward)
    (graph,) = forward.graphs.values()
    assert graph.experimental_get_tracing_count() == 1


@pytest.mark.slow
def test_frozen_blocks_are_called_directly():
    encoder = made_encoder("float32")
    encoder.freeze(CONFIG.num_hidden_layers)
    forward = Forward(traces_once=True)
    traced(encoder, forward)
    assert not forward.graphs


@pytest.mark.slow
def test_dropout_differs_between_blocks():
    """Equal weights and equal inputs: only the streams of the masks differ."""
    encoder = made_encoder("float32")
    first, second, *_ = encoder.blocks
    for mine, other in zip(second.variables, first.variables, strict=True):
        mine.assign(other)
    forward = Forward(traces_once=True)
    hidden, key = tf.random.stateless_normal([2, 4, 8], [1, 2]), tf.constant([3, 4])
    outputs = [
        forward.repeated(first, block, hidden, PassInputs(key=key))
        for block in (first, second, first)
    ]
    expected = [block(hidden, dropout_key=key) for block in (first, second, first)]
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-5)
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-3
