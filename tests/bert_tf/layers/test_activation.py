"""Activations beside the normal distribution and the paper's formula, gradients included."""

import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.layers.activation import activation

VALUES = np.linspace(-8, 8, 4001)


def values_and_slopes(name, dtype):
    inputs = tf.constant(VALUES, dtype)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = activation(name, inputs, tf.zeros_like(inputs))
    assert outputs.dtype == inputs.dtype
    slopes = tape.gradient(outputs, inputs)
    return tf.cast(outputs, tf.float64).numpy(), tf.cast(slopes, tf.float64).numpy()


# Five roundings of the largest value, which is 8.
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 5e-6)])
def test_gelu_is_the_input_times_the_normal_distribution(dtype, tolerance):
    outputs, slopes = values_and_slopes("gelu", dtype)
    distribution = np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in VALUES])
    density = np.exp(-(VALUES**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(outputs, VALUES * distribution, rtol=0, atol=tolerance)
    np.testing.assert_allclose(slopes, distribution + VALUES * density, rtol=0, atol=tolerance)


def hendrycks_and_gimpel(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 2e-5)])
def test_the_tanh_approximation_is_that_of_its_paper(dtype, tolerance):
    outputs, slopes = values_and_slopes("gelu_new", dtype)
    step = 1e-30  # along the imaginary axis, where nothing cancels
    expected_slopes = hendrycks_and_gimpel(VALUES + 1j * step).imag / step
    np.testing.assert_allclose(outputs, hendrycks_and_gimpel(VALUES), rtol=0, atol=tolerance)
    np.testing.assert_allclose(slopes, expected_slopes, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["gelu", "gelu_new"])
@pytest.mark.parametrize("bias", [0.0, 0.01])
def test_bfloat16_is_rounded_once(name, bias):
    inputs = [tf.cast(values, tf.bfloat16) for values in (VALUES, np.full_like(VALUES, bias))]
    exact = activation(name, *(tf.cast(values, tf.float64) for values in inputs)).numpy()
    outputs = tf.cast(activation(name, *inputs), tf.float64).numpy()
    # Half a step between two neighboring numbers of 8 significant bits, and float32's own error.
    np.testing.assert_allclose(outputs, exact, rtol=2.0**-8, atol=1e-6)


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "relu", "tanh", None])
def test_a_bias_is_added_first(name):
    inputs = tf.constant(VALUES[1:].reshape(2, 500, 4))
    bias = tf.constant([-1.0, 0.1, 0.5, 2.0], tf.float64)
    upstream = tf.constant(np.random.default_rng(0).normal(size=inputs.shape))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([inputs, bias])
        outputs = activation(name, inputs, bias)
        expected = activation(name, inputs + bias, tf.zeros_like(bias))
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-15)
    for source in (inputs, bias):
        np.testing.assert_allclose(
            tape.gradient(outputs, source, output_gradients=upstream),
            tape.gradient(expected, source, output_gradients=upstream),
            atol=1e-12,
        )


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="'swish' is not known"):
        activation("swish", tf.zeros([1]), tf.zeros([1]))
