import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.training.optimizer import AdamW, decays

RATE = 0.01


def variables():
    return [
        keras.Variable(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), name="kernel"),
        keras.Variable(np.linspace(1, 2, 3, dtype=np.float32), name="bias"),
    ]


def gradients(step):
    generator = np.random.default_rng(step)
    return [tf.constant(generator.normal(size=shape), tf.float32) for shape in ((2, 3), (3,))]


def adamw(**changes):
    values = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6, "weight_decay": 0.1, **changes}
    return AdamW(**values)


def updated(optimizer, steps):
    weights = variables()
    optimizer.build(weights)
    for step in range(steps):
        optimizer.admit(tf.constant(1.0), tf.constant(RATE))
        optimizer.apply(gradients(step))
    return weights


def test_updates_are_those_of_keras():
    weights = variables()
    theirs = keras.optimizers.AdamW(
        learning_rate=RATE, beta_1=0.9, beta_2=0.999, epsilon=1e-6, weight_decay=0.1
    )
    theirs.exclude_from_weight_decay(var_list=[weights[1]])
    theirs.build(weights)
    for step in range(5):
        theirs.apply(gradients(step))
    for ours, expected in zip(updated(adamw(), 5), weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-5)


def test_without_bias_correction_it_is_the_optimizer_of_the_original_bert():
    """google-research/bert optimization.py, AdamWeightDecayOptimizer.apply_gradients."""
    expected = [weight.numpy().astype(np.float64) for weight in variables()]
    moments = [(np.zeros_like(weight), np.zeros_like(weight)) for weight in expected]
    for step in range(5):
        for index, gradient in enumerate(gradients(step)):
            gradient = gradient.numpy().astype(np.float64)
            m = 0.9 * moments[index][0] + 0.1 * gradient
            v = 0.999 * moments[index][1] + 0.001 * gradient**2
            moments[index] = (m, v)
            decay = 0.1 * expected[index] if index == 0 else 0.0
            expected[index] = expected[index] - RATE * (m / (np.sqrt(v) + 1e-6) + decay)
    for ours, theirs in zip(updated(adamw(bias_correction=False), 5), expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-3)


def test_a_refused_step_changes_neither_weights_nor_moments():
    optimizer = adamw()
    weights = updated(optimizer, 3)
    variables_of_run = [*weights, *optimizer._momentums, *optimizer._velocities]
    before = [variable.numpy() for variable in variables_of_run]
    optimizer.admit(tf.constant(0.0), tf.constant(RATE))
    optimizer.apply([tf.fill([2, 3], np.nan), tf.fill([3], np.inf)])
    for variable, value in zip(variables_of_run, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_biases_and_layer_norms_of_bert_do_not_decay():
    model = BertPretrainingModel(
        BertConfig(
            vocab_size=20,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
        )
    )
    model.build_weights()
    optimizer = adamw(weight_decay=0.5)
    optimizer.build(model.trainable_variables)
    for variable in model.trainable_variables:
        variable.assign(tf.ones_like(variable))
    optimizer.admit(tf.constant(1.0), tf.constant(RATE))
    optimizer.apply([tf.zeros_like(variable) for variable in model.trainable_variables])
    decayed = {v.path for v in model.trainable_variables if np.all(v.numpy() < 1.0)}
    vectors = {v.path for v in model.trainable_variables if len(v.shape) == 1}
    everything = {variable.path for variable in model.trainable_variables}
    assert vectors, "BERT has biases"
    assert decayed == everything - vectors


@pytest.mark.parametrize("name", ["bias", "output_bias", "gamma", "beta"])
def test_names_that_do_not_decay(name):
    assert not decays(keras.Variable(np.zeros(1), name=name))
