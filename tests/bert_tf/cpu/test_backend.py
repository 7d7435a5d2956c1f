"""Copies of weights in bfloat16 change where they are converted, and no number."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.regression_task import make_loop

from bert_tf.cpu import adamw
from bert_tf.cpu.backend import ComputeCopies, without_graph_rewrites


@pytest.fixture
def policy(request):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield
    keras.config.set_dtype_policy(before)


in_bfloat16 = pytest.mark.parametrize("policy", ["mixed_bfloat16"], indirect=True)


def small_model():
    model = keras.Sequential(
        [
            keras.layers.Dense(512, activation="tanh"),  # 256 x 512: large enough
            keras.layers.Dense(3),
        ]
    )
    model.build((None, 256))
    return model


def copies_of(model):
    return ComputeCopies(model.trainable_variables, model.compute_dtype)


def gradients_of(model, inputs, copies):
    made = copies_of(model)
    with tf.GradientTape() as tape, made.in_use(copies):
        variables = [variable.value for variable in model.trainable_variables]
        tape.watch(variables)
        loss = tf.reduce_sum(tf.cast(model(inputs), tf.float32) ** 2)
    return tape.gradient(loss, variables)


@in_bfloat16
def test_gradients_are_those_of_the_variables(policy):
    model = small_model()
    inputs = tf.random.stateless_normal([8, 256], [1, 2])
    copies = copies_of(model).read()
    assert [copy.dtype for copy in copies] == [tf.bfloat16]
    expected = gradients_of(model, inputs, [])
    found = gradients_of(model, inputs, copies)
    assert found[0].dtype == tf.bfloat16
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, tf.cast(other, tf.float32))


@in_bfloat16
def test_layers_read_the_copies_and_then_the_variables_again(policy):
    model = small_model()
    copies = copies_of(model)
    inputs = tf.ones([2, 256])
    before = model(inputs)
    with copies.in_use([tf.zeros_like(copy) for copy in copies.read()]):
        zeroed = model(inputs)
    np.testing.assert_array_equal(zeroed, tf.zeros_like(before))
    np.testing.assert_array_equal(model(inputs), before)


@pytest.mark.parametrize("policy", ["float32", "bfloat16"], indirect=True)
def test_weights_that_no_layer_converts_have_none(policy):
    assert copies_of(small_model()).read() == []


@pytest.fixture
def all_large(monkeypatch):
    """Small variables have copies, and are updated in place from the parts of their gradients."""
    monkeypatch.setattr(adamw, "_LARGE", 1)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"], indirect=True)
def test_a_divided_batch_gives_the_curve_of_the_whole(policy, all_large):
    whole, divided = (make_loop(shards=shards).run().train for shards in (1, 2))
    for name in ("loss", "gradient_norm"):
        assert divided[name] == pytest.approx(whole[name], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"], indirect=True)
def test_copies_follow_the_weights_from_step_to_step(policy, optimizer, all_large):
    """A call of the compiled steps makes them from the weights."""
    keys = {"optimizer": optimizer, "shards": 2, "steps": 12, "log_every": 12}
    one, all_at_once = (make_loop(**keys, steps_per_call=number).run().train for number in (1, 12))
    assert all_at_once["loss"] == one["loss"]


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize(
    "strategy", [tf.distribute.get_strategy, lambda: tf.distribute.MirroredStrategy(["CPU:0"])]
)
def test_steps_in_place_are_those_of_tensorflows_kernels(strategy, shards, request):
    expected = make_loop(strategy(), shards=shards).run().train
    request.getfixturevalue("all_large")
    found = make_loop(strategy(), shards=shards).run().train
    for name in ("loss", "gradient_norm"):
        assert found[name] == pytest.approx(expected[name], rel=1e-5)


# Graphs run as traced inside the block, and are rewritten as before after it.


def rewrites_are_off() -> bool:
    return bool(tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False))


def test_rewrites_are_off_inside_alone():
    with without_graph_rewrites():
        assert rewrites_are_off()
    assert not rewrites_are_off()


def test_an_error_inside_leaves_them_as_they_were():
    with pytest.raises(ValueError, match="step"), without_graph_rewrites():
        raise ValueError("step")
    assert not rewrites_are_off()


def test_gpus_keep_their_rewrites(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    with without_graph_rewrites():
        assert not rewrites_are_off()
