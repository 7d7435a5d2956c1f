"""Layers in the form that TensorFlow fuses: the same outputs, by the operations it looks for."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.layers import check_layer

from bert_tf.layers.implementation import FORWARD_ONLY, PLAIN, computing_by, implementation
from bert_tf.layers.projection import Projection


@pytest.mark.parametrize("activation", [None, "gelu", "gelu_new", "tanh"])
def test_outputs_are_the_same(activation):
    keras.utils.set_random_seed(1)
    layer = Projection(5, initializer_range=1.0, activation_name=activation)
    layer.build((None, None, 4))
    layer.bias.assign(np.linspace(-1, 1, 5))
    inputs = 3 * np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
    expected = layer(inputs)
    with computing_by(FORWARD_ONLY):
        found = layer(inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert implementation() is PLAIN


def test_the_graph_has_what_the_optimizer_looks_for():
    layer = Projection(5, initializer_range=1.0, activation_name="gelu")
    layer.build((None, None, 4))

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def forward(inputs):
        with computing_by(FORWARD_ONLY):
            return layer(inputs)

    kinds = [node.op for node in forward.get_concrete_function().graph.as_graph_def().node]
    chain = [kind for kind in kinds if kind in ("MatMul", "BiasAdd", "Mul", "Erf", "AddV2")]
    assert chain == ["MatMul", "BiasAdd", "Mul", "Erf", "AddV2", "Mul", "Mul"]
    assert "IdentityN" not in kinds, "a gradient of one's own hides the operations"


INPUTS = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("activation", [None, "gelu"])
def test_layer(activation):
    arguments = {"size": 5, "initializer_range": 0.5, "activation_name": activation}
    check_layer(Projection, arguments, (INPUTS,), shape=(2, 3, 5))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (None, None),
        ("gelu", lambda values: keras.activations.gelu(values, approximate=False)),
        ("gelu_new", lambda values: keras.activations.gelu(values, approximate=True)),
        ("relu", "relu"),
        ("tanh", "tanh"),
    ],
)
def test_equals_keras_dense(ours, theirs):
    layer = Projection(5, initializer_range=0.5, activation_name=ours)
    layer.build(INPUTS.shape)
    dense = keras.layers.Dense(5, activation=theirs)
    dense.build(INPUTS.shape)
    layer.bias.assign(np.arange(5.0))
    dense.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer(INPUTS), dense(INPUTS), atol=1e-5)


def test_initial_kernels():
    """Those of heads as Keras' `lecun_normal`, the others as BERT's."""
    keras.utils.set_random_seed(1)
    head = Projection(64, initializer_range=None)
    head.build((None, 1024))
    assert np.std(head.kernel) == pytest.approx(1 / 32, rel=0.02)
    inner = Projection(64, initializer_range=0.02)
    inner.build((None, 1024))
    assert np.abs(inner.kernel).max() <= 0.04
