"""Kernels in graphs: the inputs they refuse, and the draws of dropout."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.cpu.kernels import graph, operation
from bert_tf.layers.dropout import generator_state, keep_level, keep_mask


def test_tensors_of_several_dtypes_are_refused():
    bias = keras.Variable(np.ones(4, np.float32))
    with pytest.raises(ValueError, match=r"one dtype, got \['bfloat16', 'float32'\]"):
        graph.biased_gelu(tf.ones([2, 4], tf.bfloat16), bias, is_exact=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: graph.biased_gelu(tf.ones([2, 4]), tf.ones([3]), is_exact=True),
        lambda: graph.biased_gelu(tf.ones([2, 4]), tf.ones([5]), is_exact=False),
        lambda: graph.biased_heads(tf.ones([2, 3, 24]), tf.ones([23]), parts=3, num_heads=2),
        lambda: graph.padded_rows(tf.ones([1, 4, 8]), tf.constant([[0, 1], [2, 4]])),
        lambda: graph.joined_heads(
            tf.ones([2, 2, 3, 4]), tf.constant([[0, 1], [2, 3]]), tokens=tf.constant(4)
        ),
        lambda: graph.joined_heads(
            tf.ones([1, 2, 3, 4]), tf.constant([[0, 1, 2]]), tokens=tf.constant(2)
        ),
        lambda: graph.normalized_sum(
            *(tf.ones([2, 4]), tf.ones([2, 4]), tf.ones([4]), None, tf.ones([3]), tf.ones([4])),
            keep_scale=1.0,
            epsilon=1e-12,
        ),
        lambda: graph.normalized_sum(
            *(tf.ones([2, 4]), tf.ones([1, 4]), tf.ones([4]), None, tf.ones([4]), tf.ones([4])),
            keep_scale=1.0,
            epsilon=1e-12,
        ),
        lambda: graph.normalized_sum(
            *(tf.ones([2, 4]), tf.ones([2, 4]), tf.ones([5]), None, tf.ones([4]), tf.ones([4])),
            keep_scale=1.0,
            epsilon=1e-12,
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call):
    with pytest.raises(tf.errors.InvalidArgumentError, match="shapes that do not fit"):
        tf.function(call, autograph=False)()


@pytest.mark.slow  # starts a process
def test_kernels_can_be_imported_before_tensorflow():
    modules = "bert_tf.cpu.kernels.graph, bert_tf.cpu.adamw"
    subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)


@pytest.mark.parametrize("piece_size", [operation.PIECE_SIZE, 64])
@pytest.mark.parametrize("shape", [(1,), (7, 3), (5, 12, 40, 50)])
def test_dropout_draws_what_xla_does(shape, piece_size, monkeypatch):
    monkeypatch.setattr(operation, "PIECE_SIZE", piece_size)
    key = tf.constant([-5, 70_000])

    @tf.function(autograph=False)
    def drawn(shape):
        state = generator_state(key, 3)
        return graph.kept_elements(*state, shape, level=keep_level(0.3))

    expected = keep_mask(key, stream=3, rate=0.3, shape=tf.constant(shape))
    np.testing.assert_array_equal(drawn(tf.constant(shape)), expected)
