"""Pieces of rows, computed one after the other or by several threads."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.cpu.forward import PassInputs, block_output
from bert_tf.cpu.kernels import graph, operation, workers
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
    """Return those of a block with dropout, where each kernel gets several pieces of rows."""
    block = TransformerBlock(CONFIG, first_dropout_stream=0)
    block.build()
    for number, variable in enumerate(block.trainable_variables):
        variable.assign(tf.random.stateless_normal(variable.shape, [number, 1]))

    @tf.function(autograph=False)
    def computed(hidden):
        bias = attention_bias(tf.sequence_mask([5, 4, 3, 2, 1, 5]))
        with tf.GradientTape() as tape:
            outputs = block_output(block, hidden, PassInputs(bias=bias, key=tf.constant([1, 2])))
        return [outputs, *tape.gradient(outputs, block.trainable_variables)]

    return computed(tf.random.stateless_normal([6, 5, 16], [3, 4]))


@pytest.fixture
def cores(monkeypatch):
    """Set how many there are; a function."""

    def set_cores(number):
        monkeypatch.setattr(workers, "usable_cores", lambda: number)
        workers.board_address.cache_clear()

    yield set_cores
    workers.board_address.cache_clear()


def test_workers_change_no_bit(monkeypatch, cores):
    monkeypatch.setattr(operation, "PIECE_SIZE", 64)
    cores(2)
    assert not workers.board_address()
    expected = outputs_and_gradients()
    cores(4)
    for _ in range(100):
        found = outputs_and_gradients()
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        board = workers._BOARDS[-1]
        if board[workers.BoardField.BY_WORKERS] > 0:
            break
    assert board[workers.BoardField.BY_WORKERS] > 0


def test_calls_at_the_same_time_share_the_workers(monkeypatch, cores):
    monkeypatch.setattr(operation, "PIECE_SIZE", 2048)

    def both(first, second):
        bias = tf.zeros([256])
        for _ in range(20):
            first = graph.biased_gelu(first, bias, is_exact=True)
            second = graph.biased_gelu(second, bias, is_exact=True)
        return first, second

    inputs = [tf.random.stateless_normal([999, 256], [seed, 1]) for seed in (1, 2)]
    results = []
    for number in (1, 6):
        cores(number)
        results.append(tf.function(both, autograph=False)(*inputs))
    np.testing.assert_array_equal(results[0], results[1])


def test_what_does_not_fit_in_a_piece_is_an_error(monkeypatch, cores):
    monkeypatch.setattr(operation, "PIECE_SIZE", 1)
    for number in (1, 4):
        cores(number)
        with pytest.raises(tf.errors.InvalidArgumentError, match="shapes that do not fit"):
            tf.function(
                lambda: graph.dropped_softmax(
                    tf.zeros([3, 1, 2, 2]), tf.zeros([2, 1, 1, 2]), None, scale=1.0, keep_scale=1.0
                )
            )()
