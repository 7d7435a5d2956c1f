from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.rounding import assert_same_but_for_rounding

from bert_tf.config.bert import BertConfig
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.training.optimizers import AdamW, Lamb, StableAdamW, decays, layer_rate_factor

RATE = 0.01
GOLDEN = Path(__file__).parents[2] / "golden"


def variables():
    return [
        keras.Variable(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), name="kernel"),
        keras.Variable(np.linspace(1, 2, 3, dtype=np.float32), name="bias"),
    ]


def gradients(step):
    generator = np.random.default_rng(step)
    return [tf.constant(generator.normal(size=shape), tf.float32) for shape in ((2, 3), (3,))]


def made(kind, **changes):
    values = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6, "weight_decay": 0.1, **changes}
    return kind(**values)


def adamw(**changes):
    return made(AdamW, **changes)


def updated(optimizer, steps):
    weights = variables()
    optimizer.build(weights)
    for step in range(steps):
        optimizer.prepare_step(tf.constant(1.0), tf.constant(RATE))
        optimizer.apply(gradients(step))
    return weights


def test_updates_are_those_of_pytorch():
    """tests/parity/adamw_updates.py has written them."""
    expected = np.load(GOLDEN / "adamw_updates.npz")
    weight = keras.Variable(expected["start"], name="kernel")
    optimizer = adamw()
    optimizer.build([weight])
    for gradient, after in zip(expected["gradients"], expected["weights"], strict=True):
        optimizer.prepare_step(tf.constant(1.0), tf.constant(RATE))
        optimizer.apply([tf.constant(gradient)])
        np.testing.assert_allclose(weight.numpy(), after, rtol=2e-6, atol=1e-8)


def test_biases_do_not_decay():
    steps = [gradients(step)[1] for step in range(5)]
    weight = variables()[1]
    optimizer = adamw(weight_decay=0.0)
    optimizer.build([weight])
    for gradient in steps:
        optimizer.prepare_step(tf.constant(1.0), tf.constant(RATE))
        optimizer.apply([gradient])
    found = updated(adamw(), 5)[1].numpy()
    assert_same_but_for_rounding(found, weight.numpy(), roundings=5 * 10)


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


def ratio(weight, update):
    """phi(|x|) / |update| with phi the identity."""
    norms = np.linalg.norm(weight), np.linalg.norm(update)
    return norms[0] / norms[1] if min(norms) > 0 else 1.0


def algorithm_2(weight, step_gradients, *, decays, columns=1):
    """LAMB, arXiv 1904.00962, Algorithm 2, in float64; `columns` matrices stand side by side."""
    weight = weight.astype(np.float64)
    m = v = np.zeros_like(weight)
    for t, gradient in enumerate(step_gradients, start=1):
        g = gradient.astype(np.float64)
        m = 0.9 * m + (1 - 0.9) * g
        v = 0.999 * v + (1 - 0.999) * g**2
        r = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6)
        if decays:
            r = r + 0.1 * weight
            parts = [np.split(array, columns, axis=-1) for array in (weight, r)]
            r = np.concatenate([ratio(x, u) * u for x, u in zip(*parts, strict=True)], axis=-1)
        weight = weight - RATE * r
    return weight


def test_lamb_is_the_papers_algorithm_without_a_trust_ratio_for_biases():
    steps = [[gradient.numpy() for gradient in gradients(step)] for step in range(5)]
    ours = updated(made(Lamb), 5)
    for index, decays_too in enumerate((True, False)):
        expected = algorithm_2(
            variables()[index].numpy(), [step[index] for step in steps], decays=decays_too
        )
        np.testing.assert_allclose(ours[index].numpy(), expected, rtol=2e-5)


def test_lamb_without_decay_is_that_of_keras():
    weights = [variables()[0]]
    theirs = keras.optimizers.Lamb(learning_rate=RATE, beta_1=0.9, beta_2=0.999, epsilon=1e-6)
    theirs.build(weights)
    for step in range(5):
        theirs.apply(gradients(step)[:1])
    ours = updated(made(Lamb, weight_decay=0.0), 5)[0]
    np.testing.assert_allclose(ours.numpy(), weights[0].numpy(), rtol=1e-5)


def test_lamb_has_a_trust_ratio_for_each_of_queries_keys_and_values():
    class Holder(keras.layers.Layer):
        def build(self, _):
            self.kernel = self.add_weight(name="kernel", shape=(2, 6))

    holder = Holder(name="query_key_value")
    holder.build(None)
    start = np.array([[1, 2, 10, 20, 100, 200], [3, 4, 0, 0, 5, 6]], np.float32)
    holder.kernel.assign(start)
    steps = [np.random.default_rng(step).normal(size=(2, 6)).astype(np.float32) for step in (0, 1)]
    optimizer = made(Lamb)
    optimizer.build([holder.kernel])
    for gradient in steps:
        optimizer.prepare_step(tf.constant(1.0), tf.constant(RATE))
        optimizer.apply([tf.constant(gradient)])
    expected = algorithm_2(start, steps, decays=True, columns=3)
    np.testing.assert_allclose(holder.kernel.numpy(), expected, rtol=2e-5)


def test_lamb_moves_a_kernel_of_zeros():
    weight = keras.Variable(np.zeros((2, 3), np.float32), name="kernel")
    optimizer = made(Lamb)
    optimizer.build([weight])
    optimizer.prepare_step(tf.constant(1.0), tf.constant(RATE))
    optimizer.apply([tf.ones([2, 3])])
    np.testing.assert_allclose(weight.numpy(), -RATE, rtol=1e-5)


@pytest.mark.parametrize("kind", [AdamW, Lamb, StableAdamW])
def test_a_rate_factor_is_a_learning_rate_of_the_variables_own(kind):
    """Decay too: with half the rate everywhere the result is the same as with half the factor."""
    halved = updated(made(kind, rate_factor=lambda variable: 0.5), 3)
    weights = variables()
    optimizer = made(kind)
    optimizer.build(weights)
    for step in range(3):
        optimizer.prepare_step(tf.constant(1.0), tf.constant(RATE / 2))
        optimizer.apply(gradients(step))
    for ours, expected in zip(halved, weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-6)


def test_layer_decay_falls_from_the_head_to_the_embeddings():
    """BEiT, optim_factory.py: get_num_layer_for_vit and LayerDecayValueAssigner."""
    model = bert(num_hidden_layers=2)
    factor = layer_rate_factor(0.5, 2)
    found = {variable.path.partition("/")[2]: factor(variable) for variable in model.weights}
    assert found["encoder/embeddings/word_embeddings"] == 0.125
    assert found["encoder/embeddings/layer_norm/gamma"] == 0.125
    assert found["encoder/block_0/attention/query_key_value/kernel"] == 0.25
    assert found["encoder/block_1/output_layer_norm/beta"] == 0.5
    assert found["encoder/pooler/kernel"] == found["masked_lm/transform/kernel"] == 1.0
    assert set(found.values()) == {0.125, 0.25, 0.5, 1.0}
    assert layer_rate_factor(1.0, 2)(model.weights[0]) == 1.0


@pytest.mark.parametrize("kind", [AdamW, Lamb, StableAdamW])
def test_a_skipped_step_changes_neither_weights_nor_moments(kind):
    optimizer = made(kind)
    weights = updated(optimizer, 3)
    variables_of_run = [
        *weights,
        *optimizer._momentums,
        *optimizer._velocities,
        optimizer.iterations,
    ]
    before = [variable.numpy() for variable in variables_of_run]
    optimizer.prepare_step(tf.constant(0.0), tf.constant(RATE))
    optimizer.apply([tf.zeros([2, 3]), tf.zeros([3])])
    for variable, value in zip(variables_of_run, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def bert(num_hidden_layers=1):
    model = BertPretrainingModel(
        BertConfig(
            vocab_size=20,
            hidden_size=8,
            num_hidden_layers=num_hidden_layers,
            num_attention_heads=2,
            intermediate_size=16,
        )
    )
    model.build_weights()
    return model


@pytest.mark.parametrize("kind", [AdamW, Lamb, StableAdamW])
def test_biases_and_layer_norms_of_bert_do_not_decay(kind):
    model = bert()
    optimizer = made(kind, weight_decay=0.5)
    optimizer.build(model.trainable_variables)
    for variable in model.trainable_variables:
        variable.assign(tf.ones_like(variable))
    optimizer.prepare_step(tf.constant(1.0), tf.constant(RATE))
    optimizer.apply([tf.zeros_like(variable) for variable in model.trainable_variables])
    decayed = {v.path for v in model.trainable_variables if np.all(v.numpy() < 1.0)}
    vectors = {v.path for v in model.trainable_variables if len(v.shape) == 1}
    everything = {variable.path for variable in model.trainable_variables}
    assert vectors, "BERT has biases"
    assert decayed == everything - vectors


@pytest.mark.parametrize("name", ["bias", "output_bias", "gamma", "beta"])
def test_names_that_do_not_decay(name):
    assert not decays(keras.Variable(np.zeros(1), name=name))


def test_stable_adamw_divides_the_rate_by_how_much_gradients_outgrow_the_second_moment():
    """Algorithm 2 of arXiv 2304.13013, with the bias corrected as in AdamW."""
    beta_1 = 0.9
    beta_2 = 0.99
    epsilon = 1e-6
    decay = 0.1
    kernel, bias = variables()
    optimizer = made(StableAdamW, beta_2=beta_2, epsilon=epsilon, weight_decay=decay)
    optimizer.build([kernel, bias])
    expected = [kernel.numpy().astype(np.float64), bias.numpy().astype(np.float64)]
    moments = [[np.zeros_like(each), np.zeros_like(each)] for each in expected]
    divided = []
    for step in range(1, 7):
        jump = 50.0 if step == 5 else 1.0
        grads = [jump * gradient.numpy().astype(np.float64) for gradient in gradients(step)]
        for index, gradient in enumerate(grads):
            m, v = moments[index]
            m[:] = beta_1 * m + (1 - beta_1) * gradient
            v[:] = beta_2 * v + (1 - beta_2) * gradient**2
            second = v / (1 - beta_2**step)
            rms = np.sqrt(np.mean(gradient**2 / np.maximum(second, epsilon**2)))
            rate = RATE / max(1.0, rms)
            divided.append(rms > 1)
            if index == 0:
                expected[index] -= rate * decay * expected[index]
            expected[index] -= rate * (m / (1 - beta_1**step)) / (np.sqrt(second) + epsilon)
        optimizer.prepare_step(tf.constant(1.0), tf.constant(RATE))
        optimizer.apply([tf.constant(gradient, tf.float32) for gradient in grads])
    assert any(divided)
    for ours, theirs in zip([kernel, bias], expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-7)


def test_stable_adamw_is_adamw_while_gradients_do_not_jump():
    """Equal gradients have a root mean square of 1."""
    found = []
    for kind in (AdamW, StableAdamW):
        weights = variables()
        optimizer = made(kind)
        optimizer.build(weights)
        for _ in range(4):
            optimizer.prepare_step(tf.constant(1.0), tf.constant(RATE))
            optimizer.apply(gradients(1))
        found.append([weight.numpy() for weight in weights])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)
