"""The fast path of each layer against the layer, in graphs of any shape."""

from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.cpu.forward import Forward, PassInputs, attention_output, norm_of_sum, project
from bert_tf.cpu.kernels import operation
from bert_tf.layers.dropout import StatelessDropout
from bert_tf.layers.implementation import PLAIN, computing_by
from bert_tf.layers.layer_norm import LayerNorm
from bert_tf.layers.projection import Projection
from bert_tf.layers.self_attention import SelfAttention, attention_bias, same_sequence_mask
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.step_trial import StepShape, full_batch

KEY = np.int32([1, 2])
# Relative to the largest value of sums of up to 100 products, whose roundings add up.
POLICIES = pytest.mark.parametrize(
    ("policy", "tolerance"), [("float32", 1e-5), ("mixed_bfloat16", 0.02)]
)


SLOW = pytest.mark.slow  # traces more of the same


def kernel_calls(function):
    """Call of kernels in the graph of a function and in those that it calls."""
    definition = function.graph.as_graph_def()
    functions = [function.node_def for function in definition.library.function]
    nodes = [node for part in (definition.node, *functions) for node in part]
    return sum(node.op == "BertTfKernel" for node in nodes)


def outputs_and_gradients(call, layer, inputs, *, calls):
    """Return outputs and gradients in a graph that knows the last axis of the shape alone.

    The upstream gradient differs from element to element. `calls` of kernels are expected.
    """
    inputs = [tf.cast(values, layer.compute_dtype) for values in inputs]
    signature = [tf.TensorSpec([None] * (v.shape.rank - 1) + v.shape[-1:], v.dtype) for v in inputs]

    @tf.function(autograph=False, input_signature=signature)
    def computed(*inputs):
        sources = [*inputs, *(variable.value for variable in layer.trainable_variables)]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = call(*inputs)
        size = tf.cast(tf.size(outputs), tf.float32)
        upstream = tf.reshape(tf.sin(tf.range(size)), tf.shape(outputs))
        return [outputs, *tape.gradient(outputs, sources, tf.cast(upstream, outputs.dtype))]

    assert kernel_calls(computed.get_concrete_function()) == calls
    return computed(*inputs)


def attended(layer, hidden, positions=None, **shared):
    outputs, bias = attention_output(layer, hidden, PassInputs(**shared), positions)
    return outputs + bias


def check_kernels(
    plain, fast, layer, inputs, tolerance, *, rate=0.0, kernels=1, piece_sizes=(None, 64)
):
    """Expect one call of each kernel forward, one backward, and one for dropout's draws.

    Kernels get all rows at once, and a few at a time. A gradient of weights sums over rows: beyond
    100 of them, its rounding grows with their root.
    """
    generator = np.random.default_rng(3)
    for variable in layer.trainable_variables:
        variable.assign(generator.normal(0.5, 0.5, variable.shape))
    expected = outputs_and_gradients(plain, layer, inputs, calls=0)
    rows = inputs[0].size / inputs[0].shape[-1]
    for size in piece_sizes:
        with mock.patch.object(operation, "PIECE_SIZE", size or operation.PIECE_SIZE):
            found = outputs_and_gradients(fast, layer, inputs, calls=2 * kernels + bool(rate))
        for place, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
            assert mine.dtype == theirs.dtype
            mine, theirs = (tf.cast(values, tf.float32).numpy() for values in (mine, theirs))
            of_weights = place > len(inputs)
            bound = tolerance * (max(1, rows / 100) ** 0.5 if of_weights else 1)
            np.testing.assert_allclose(
                mine, theirs, atol=bound * np.abs(theirs).max(), err_msg=f"pieces of {size}"
            )


@POLICIES
@pytest.mark.parametrize("name", ["gelu", "gelu_new"])
def test_gelu(policy, tolerance, name):
    layer = Projection(40, initializer_range=0.02, activation_name=name, dtype=policy)
    layer.build((None, 8))
    inputs = np.random.default_rng(1).normal(0, 2, size=(3, 5, 8))
    check_kernels(layer, lambda values: project(layer, values), layer, [inputs], tolerance)


@POLICIES
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_layer_norm_of_sum(policy, tolerance, rate):
    layer = LayerNorm(epsilon=1e-12, dtype=policy)
    layer.build((None, 40))
    dropout = StatelessDropout(rate, stream=2, dtype=policy)
    generator = np.random.default_rng(1)
    inputs = [*generator.normal(3, 2, size=(2, 3, 5, 40)), generator.normal(0, 2, size=40)]
    check_kernels(
        lambda hidden, change, bias: layer.of_sum(hidden, change + bias, dropout, KEY),
        lambda hidden, *change: norm_of_sum(layer, hidden, change, dropout, PassInputs(key=KEY)),
        *(layer, inputs, tolerance),
        rate=rate,
    )


MASK = np.random.default_rng(4).random((3, 50)) < 0.7
BIASES = {
    "no bias": lambda: None,
    "of rows": lambda: attention_bias(MASK),
    "of queries": lambda: attention_bias(same_sequence_mask(np.cumsum(MASK, axis=1))),
    "of heads": lambda: tf.random.stateless_normal([1, 4, 1, 50], [1, 2]),
}


@POLICIES
@pytest.mark.parametrize(
    ("bias", "rate"),
    [
        ("of rows", 0.3),
        *(pytest.param(name, 0.3, marks=SLOW) for name in ("no bias", "of queries", "of heads")),
        *(pytest.param(name, 0.0, marks=SLOW) for name in ("no bias", "of rows")),
    ],
)
def test_attention(policy, tolerance, bias, rate):
    layer = SelfAttention(
        num_heads=4, dropout_rate=rate, dropout_stream=1, initializer_range=0.02, dtype=policy
    )
    layer.build((None, None, 16))
    inputs = np.random.default_rng(1).normal(0, 0.3, size=(3, 50, 16))
    bias = BIASES[bias]()
    # Where scores are float32 alike, gradients differ by those of a hundred keys.
    check_kernels(
        lambda hidden: layer(hidden, bias, KEY),
        lambda hidden: attended(layer, hidden, bias=bias, key=KEY),
        *(layer, [inputs], 5 * tolerance),
        rate=rate,
        kernels=3,
    )


@SLOW
def test_long_rows_are_more_than_one_block():
    layer = SelfAttention(
        num_heads=1, dropout_rate=0.1, dropout_stream=1, initializer_range=0.02, dtype="float32"
    )
    layer.build((None, None, 4))
    inputs = np.random.default_rng(1).normal(0, 0.3, size=(1, 4500, 4))
    check_kernels(
        lambda hidden: layer(hidden, None, KEY),
        lambda hidden: attended(layer, hidden, key=KEY),
        *(layer, [inputs], 2e-5),
        rate=0.1,
        kernels=3,
        piece_sizes=[None],
    )


@POLICIES
def test_attention_of_few_tokens_to_all(policy, tolerance):
    layer = SelfAttention(
        num_heads=4, dropout_rate=0.0, dropout_stream=1, initializer_range=0.02, dtype=policy
    )
    layer.build((None, None, 16))
    inputs = np.random.default_rng(1).normal(0, 0.3, size=(3, 50, 16))
    bias = BIASES["of rows"]()
    positions = tf.constant([[0, 7], [0, 49], [3, 3]])
    check_kernels(
        lambda hidden: layer(hidden, bias, positions=positions),
        lambda hidden: attended(layer, hidden, positions, bias=bias),
        *(layer, [inputs], 5 * tolerance),
        kernels=4,
    )


@pytest.mark.parametrize("value", [np.nan, -np.nan])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_nan_comes_out_again(policy, value):
    exact, approximate = (
        Projection(8, initializer_range=0.02, activation_name=name, dtype=policy)
        for name in ("gelu", "gelu_new")
    )
    for layer in (exact, approximate):
        layer.build((None, 8))
    attention = SelfAttention(
        num_heads=2, dropout_rate=0.0, dropout_stream=1, initializer_range=0.02, dtype=policy
    )
    attention.build((None, None, 8))
    norm = LayerNorm(epsilon=1e-3, dtype=policy)
    norm.build((None, None, 8))
    inputs = np.ones((2, 3, 8), np.float32)
    inputs[0, 1, 2] = value

    @tf.function(autograph=False)
    def computed(inputs):
        inputs = tf.cast(inputs, attention.compute_dtype)
        change = inputs, tf.zeros(8, inputs.dtype)
        total = norm_of_sum(norm, inputs, change, StatelessDropout(0.0, stream=1), PassInputs())
        activated = project(approximate, project(exact, inputs))
        return [
            tf.cast(outputs, tf.float32)
            for outputs in (activated, total, attended(attention, inputs))
        ]

    activated, normalized, weighted = computed(tf.constant(inputs))
    for outputs in (activated, normalized):
        np.testing.assert_array_equal(np.isnan(outputs).all(axis=-1), np.isnan(inputs).any(axis=-1))
        assert np.isfinite(outputs[1]).all()
    assert np.isnan(weighted[0]).all()
    assert np.isfinite(weighted[1]).all()


def test_a_bias_that_does_not_fit_is_refused():
    layer = SelfAttention(
        num_heads=2, dropout_rate=0.0, dropout_stream=1, initializer_range=0.02, dtype="float32"
    )
    layer.build((None, None, 8))

    @tf.function(autograph=False)
    def computed(bias):
        return attended(layer, tf.ones([2, 3, 8]), bias=bias)

    for shape in ([2, 1, 1, 1], [3, 1, 1, 3], [2, 1, 2, 3]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="shapes that do not fit"):
            computed(tf.zeros(shape))


CONFIG = BertConfig(
    vocab_size=50,
    hidden_size=8,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
    hidden_act="gelu_new",
)


def test_there_are_none_outside_the_context():
    encoder = BertEncoder(CONFIG)
    encoder.build_weights()
    ids = tf.ones([2, 4], tf.int32)
    with computing_by(Forward()):
        inside = tf.function(encoder, autograph=False).get_concrete_function(ids)
    assert kernel_calls(inside)
    outside = tf.function(encoder, autograph=False).get_concrete_function(ids)
    assert not kernel_calls(outside)


def loss_and_gradients(model, batch, forward=None):
    """Return loss and gradients of a pretraining step with dropout."""

    @tf.function(autograph=False)
    def computed():
        variables = [variable.value for variable in model.trainable_variables]
        with tf.GradientTape() as tape:
            parts = PretrainingLoss()(model, batch, training=True, dropout_key=KEY)
            loss = tf.add_n(list(parts.losses.values()))
        gradients = tape.gradient(loss, variables)
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    with computing_by(forward or PLAIN):
        assert bool(kernel_calls(computed.get_concrete_function())) == (forward is not None)
        return computed()


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "tolerance"), [("float32", 1e-5), ("mixed_bfloat16", 0.01)])
@pytest.mark.parametrize("traces_once", [True, False])
def test_a_pretraining_step_has_the_same_loss_and_gradients(policy, tolerance, traces_once):
    keras.utils.set_random_seed(1)
    batch = full_batch(StepShape(rows=4, length=16, predictions=3), CONFIG.vocab_size)
    batch["input_mask"][1:, 9:] = 0
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    model = BertPretrainingModel(CONFIG, dtype=policy)
    model.build_weights()
    generator = np.random.default_rng(5)
    for variable in model.trainable_variables:
        if len(variable.shape) == 1:  # biases, which are 0 at first
            variable.assign_add(generator.normal(0, 0.3, variable.shape))
    loss, gradients = loss_and_gradients(model, tensors)
    forward = Forward(traces_once=traces_once)
    fused_loss, fused = loss_and_gradients(model, tensors, forward)
    np.testing.assert_allclose(fused_loss, loss, rtol=tolerance)
    mine, expected = (np.concatenate([np.ravel(g) for g in each]) for each in (fused, gradients))
    assert np.linalg.norm(mine - expected) < tolerance * np.linalg.norm(expected)
