"""The distances of student and teacher against PyTorch's and closed forms of SciPy."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, softmax
from scipy.stats import entropy

from bert_tf.base.errors import UsageError
from bert_tf.tasks.base.label_task import (
    order_of_labels,
    softened_binary_divergence,
    softened_divergence,
)

LOGITS = arrays(np.float32, (4, 3), elements=st.floats(-8, 8, width=32))
TEMPERATURES = st.sampled_from([0.5, 1.0, 2.0, 7.0])
GOLDEN = Path(__file__).parents[3] / "golden" / "distillation_loss.npz"


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 7.0])
def test_loss_and_gradient_are_those_of_pytorch(temperature):
    """Values that tests/parity/distillation_loss.py wrote."""
    golden = np.load(GOLDEN)
    student, teacher = tf.constant(golden["student"]), tf.constant(golden["teacher"])
    with tf.GradientTape() as tape:
        tape.watch(student)
        loss = tf.reduce_mean(softened_divergence(student, teacher, temperature))
    assert loss.numpy() == pytest.approx(golden[f"{temperature}/loss"], rel=1e-5)
    gradient = tape.gradient(loss, student)
    np.testing.assert_allclose(gradient, golden[f"{temperature}/gradient"], atol=2e-6)


@given(LOGITS, LOGITS, TEMPERATURES)
def test_the_divergence_is_that_of_the_softened_distributions(student, teacher, temperature):
    """SciPy's relative entropy, in float64, times T²."""
    found = softened_divergence(tf.constant(student), tf.constant(teacher), temperature)
    p, q = (softmax(v.astype(float) / temperature, axis=1) for v in (teacher, student))
    np.testing.assert_allclose(found, temperature**2 * entropy(p, q, axis=1), atol=2e-4, rtol=1e-3)


@given(LOGITS, LOGITS, TEMPERATURES)
def test_of_several_labels_it_is_the_mean_of_those_of_each(student, teacher, temperature):
    found = softened_binary_divergence(tf.constant(student), tf.constant(teacher), temperature)
    p, q = (expit(v.astype(float) / temperature) for v in (teacher, student))
    each = entropy(np.stack([p, 1 - p]), np.stack([q, 1 - q]), axis=0)
    expected = temperature**2 * each.mean(axis=1)
    np.testing.assert_allclose(found, expected, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("divergence", [softened_divergence, softened_binary_divergence])
def test_gradients_keep_their_size_at_any_temperature(divergence):
    """They tend to the same where T is high (Hinton et al. 2015, equation 4)."""
    student, teacher = tf.constant([[0.5, -0.5, 0.0]]), tf.constant([[0.1, 0.2, -0.3]])
    norms = []
    for temperature in (50.0, 100.0):
        with tf.GradientTape() as tape:
            tape.watch(student)
            loss = divergence(student, teacher, temperature)
        norms.append(float(tf.linalg.norm(tape.gradient(loss, student))))
    assert norms[0] == pytest.approx(norms[1], rel=0.01) and norms[0] > 0.01


def test_labels_are_found_by_name():
    assert order_of_labels(("a", "b", "c"), ("c", "a", "b"), "t").tolist() == [1, 2, 0]
    with pytest.raises(UsageError, match=r"^--teacher t: knows the labels 'a', the training rows"):
        order_of_labels(("a", "b"), ("a",), "t")
