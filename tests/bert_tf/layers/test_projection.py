"""Projections against Keras' dense layer."""

import keras
import numpy as np
import pytest
from behavior.layers import check_layer

from bert_tf.layers.projection import Projection

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
