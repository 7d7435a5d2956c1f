"""Pieces of rows, worked on one after the other or side by side."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.layers.kernels import graph, operation, pieces
from bert_tf.layers.kernels.choice import fused_kernels
from bert_tf.layers.self_attention import attention_bias
from bert_tf.layers.transformer_block import TransformerBlock

CONFIG = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
)


def of_gelu(inputs, bias):
    """GELU and its gradients, whose upstream is 1."""

    @tf.function(autograph=False)
    def computed(inputs, bias):
        with tf.GradientTape() as tape:
            tape.watch([inputs, bias])
            outputs = graph.biased_gelu(inputs, bias, is_exact=True)
        return [outputs, *tape.gradient(outputs, [inputs, bias])]

    return computed(inputs, bias)


@pytest.mark.parametrize("rows", [0, 1, 8, 9, 40])
def test_pieces_are_the_rows_and_their_sums_are_added_up(monkeypatch, rows):
    inputs, bias = tf.random.stateless_normal([rows, 8], [1, 2]), tf.zeros([8])
    whole = of_gelu(inputs, bias)
    monkeypatch.setattr(operation, "PIECE_SIZE", 24)
    for mine, theirs in zip(of_gelu(inputs, bias), whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(whole[2], tf.reduce_sum(whole[1], axis=0), rtol=1e-5, atol=1e-6)


def outputs_and_gradients():
    """Of a block with dropout, several pieces of rows in every kernel."""
    block = TransformerBlock(CONFIG, first_dropout_stream=0)
    block.build()
    for number, variable in enumerate(block.trainable_variables):
        variable.assign(tf.random.stateless_normal(variable.shape, [number, 1]))

    @tf.function(autograph=False)
    def computed(hidden):
        bias = attention_bias(tf.sequence_mask([5, 4, 3, 2, 1, 5]))
        with tf.GradientTape() as tape:
            outputs = block(hidden, attention_bias=bias, dropout_key=tf.constant([1, 2]))
        return [outputs, *tape.gradient(outputs, block.trainable_variables)]

    with fused_kernels():
        return computed(tf.random.stateless_normal([6, 5, 16], [3, 4]))


def test_one_after_the_other_is_side_by_side_bit_by_bit(monkeypatch):
    monkeypatch.setattr(operation, "PIECE_SIZE", 64)
    monkeypatch.setattr(pieces, "_pool", lambda: None)
    expected = outputs_and_gradients()
    used = []
    with ThreadPoolExecutor(3) as pool:
        monkeypatch.setattr(pieces, "_pool", lambda: used.append(1) or pool)
        found = outputs_and_gradients()
    assert used
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_an_error_in_a_piece_is_raised(monkeypatch):
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(pieces, "_pool", lambda: pool)
        with pytest.raises(ZeroDivisionError):
            pieces.for_each(lambda number: 1 / number, [1, 0, 2])
