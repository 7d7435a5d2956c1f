"""Graphs are released with the block that traced them."""

import gc
import weakref

import tensorflow as tf

from bert_tf.training.memory import releasing_graphs


def traced():
    @tf.custom_gradient
    def doubled(values):
        return 2 * values, lambda upstream: 2 * upstream

    function = tf.function(doubled)
    assert function(tf.constant(3.0)) == 6
    return function


def test_graphs_of_the_block_are_released():
    with releasing_graphs():
        graph = weakref.ref(traced().get_concrete_function(tf.constant(3.0)).graph)
    gc.collect()
    assert graph() is None


def test_gradients_from_before_the_block_stay():
    function, value = traced(), tf.constant(3.0)
    with releasing_graphs():
        traced()
    with tf.GradientTape() as tape:
        tape.watch(value)
        result = function(value)
    assert tape.gradient(result, value) == 2
