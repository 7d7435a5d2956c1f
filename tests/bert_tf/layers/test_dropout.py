"""Dropout keyed by the caller: rate, scale, independence, determinism."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from behavior.layers import check_layer
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import UsageError
from bert_tf.layers.dropout import (
    LEVELS,
    StatelessDropout,
    keep_level,
    keep_mask,
    next_power_of_two,
)

KEYS = st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
SIZE = 40_000


def draw(key, *, stream=0, rate=0.5, shape=(SIZE,)):
    return keep_mask(
        tf.constant(key, tf.int32), stream=stream, rate=rate, shape=tf.constant(shape, tf.int32)
    ).numpy()


def five_deviations(probability, number=SIZE):
    """Bound that a fair draw exceeds once in two million times."""
    return 5 * np.sqrt(probability * (1 - probability) / number)


@given(key=KEYS, rate=st.floats(0.01, 0.99))
@fewer_examples(0.25)
def test_the_share_kept_is_the_rounded_rate(key, rate):
    expected = keep_level(rate) / LEVELS
    assert abs(expected - (1 - rate)) <= 0.5 / LEVELS
    assert abs(draw(key, rate=rate).mean() - expected) < five_deviations(expected)


@given(key=KEYS, other=KEYS, streams=st.tuples(st.integers(0, 100), st.integers(0, 100)))
@fewer_examples(0.25)
def test_masks_agree_by_chance_only_where_key_or_stream_differ(key, other, streams):
    one, two = draw(key, stream=streams[0]), draw(other, stream=streams[1])
    if key == other and streams[0] == streams[1]:
        np.testing.assert_array_equal(one, two)
    else:
        assert abs((one == two).mean() - 0.5) < five_deviations(0.5)


def test_the_four_draws_of_a_random_integer_are_independent():
    mask = draw((1, 2)).reshape(-1, 4)
    for left in range(4):
        for right in range(left):
            agreement = (mask[:, left] == mask[:, right]).mean()
            assert abs(agreement - 0.5) < five_deviations(0.5, len(mask))


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0), (4, 4)])
def test_any_shape_is_a_prefix_of_the_same_numbers(shape):
    mask = draw((7, 8), shape=shape)
    assert mask.shape == shape
    np.testing.assert_array_equal(mask.ravel(), draw((7, 8))[: mask.size])


@pytest.mark.slow
def test_graphs_of_unknown_shapes_draw_the_same_numbers():
    signature = [tf.TensorSpec([2], tf.int32), tf.TensorSpec([None], tf.int32)]
    graph = tf.function(
        lambda key, shape: keep_mask(key, stream=0, rate=0.5, shape=shape),
        input_signature=signature,
    )
    for size in (0, 1, 4, 5, 16, 17, 31, 1023, 1024, 1025):
        np.testing.assert_array_equal(graph([7, 8], [size]), draw((7, 8))[:size])


@pytest.mark.parametrize("power", range(30))
def test_the_next_power_of_two(power):
    two = 2**power
    assert int(next_power_of_two(tf.constant(two))) == two
    assert int(next_power_of_two(tf.constant(two + 1))) == 2 * two
    assert int(next_power_of_two(tf.constant(0))) == 1


def test_extreme_rates_never_drop_all_or_nothing():
    assert keep_level(1e-6) == LEVELS - 1
    assert keep_level(1 - 1e-6) == 1


def test_graphs_draw_no_more_than_a_known_shape_needs():
    graph = tf.function(
        lambda x: StatelessDropout(0.5, stream=0)(x, dropout_key=tf.constant([1, 2]))
    )
    nodes = graph.get_concrete_function(tf.TensorSpec([3, 5, 7])).graph.as_graph_def().node
    drawn = [tf.make_ndarray(n.attr["value"].tensor).tolist() for n in nodes if n.op == "Const"]
    assert [27] in drawn, "words, of four draws each, for 105 elements"


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_low_precision_does_not_move_the_expected_output(policy):
    layer = StatelessDropout(0.1, stream=0, dtype=policy)
    inputs = tf.cast(tf.random.stateless_uniform([1 << 18], [3, 4]), layer.compute_dtype)
    outputs = tf.cast(layer(inputs, dropout_key=tf.constant([1, 2])), tf.float32).numpy()
    kept = tf.cast(inputs, tf.float32).numpy()[outputs > 0]
    np.testing.assert_allclose(outputs.sum() / kept.sum(), LEVELS / keep_level(0.1), rtol=1e-4)


@given(rate=st.floats(0.05, 0.6), key=KEYS)
@fewer_examples(0.17)
def test_the_expected_output_is_the_input(rate, key):
    outputs = StatelessDropout(rate, stream=0)(tf.ones([SIZE]), dropout_key=tf.constant(key))
    keep = keep_level(rate) / LEVELS
    assert set(np.unique(outputs)) <= {np.float32(0), np.float32(LEVELS / keep_level(rate))}
    assert abs(np.mean(outputs) - 1) < five_deviations(keep) / keep


def test_no_key_or_a_rate_of_zero_changes_nothing():
    inputs = tf.random.normal([3, 4])
    np.testing.assert_array_equal(StatelessDropout(0.5, stream=0)(inputs), inputs)
    dropped = StatelessDropout(0.0, stream=0)(inputs, dropout_key=tf.constant([1, 2]))
    np.testing.assert_array_equal(dropped, inputs)


def test_other_backends_are_refused_where_something_would_be_dropped(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    inputs, key = tf.ones([2, 3]), tf.constant([1, 2])
    np.testing.assert_array_equal(StatelessDropout(0.5, stream=0)(inputs), inputs)
    np.testing.assert_array_equal(StatelessDropout(0.0, stream=0)(inputs, dropout_key=key), inputs)
    with pytest.raises(UsageError, match="needs Keras' TensorFlow backend, got 'jax'"):
        StatelessDropout(0.5, stream=0)(inputs, dropout_key=key)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_graphs_and_xla_draw_the_same_bits(policy):
    layer = StatelessDropout(0.1, stream=3, dtype=policy)
    inputs = tf.cast(tf.ones([5, 7, 3]), layer.compute_dtype)
    key = tf.constant([5, 6])
    expected = layer(inputs, dropout_key=key)
    assert expected.dtype == layer.compute_dtype

    def call(inputs, key):
        return layer(inputs, dropout_key=key)

    unknown = tf.TensorSpec([None, None, 3], inputs.dtype)
    graph = tf.function(call, input_signature=[unknown, tf.TensorSpec([2], tf.int32)])
    for compiled in (graph, tf.function(call, jit_compile=True)):
        np.testing.assert_array_equal(
            tf.cast(compiled(inputs, key), tf.float32), tf.cast(expected, tf.float32)
        )


def test_the_gradient_flows_through_what_stayed():
    layer, inputs = StatelessDropout(0.25, stream=0), tf.ones([100])
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs, dropout_key=tf.constant([1, 1]))
    np.testing.assert_array_equal(tape.gradient(outputs, inputs), outputs)


def test_layer():
    inputs = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    check_layer(
        StatelessDropout,
        {"rate": 0.25, "stream": 4},
        (inputs, np.array([1, 2], np.int32)),
        shape=(2, 3),
    )
