"""Embeddings, and the defaults of segments and positions."""

import numpy as np
import pytest
from behavior.layers import check_layer

from bert_tf.config.bert import BertConfig
from bert_tf.layers.embeddings import BertEmbeddings

CONFIG = BertConfig(
    vocab_size=11,
    hidden_size=6,
    num_hidden_layers=1,
    num_attention_heads=1,
    intermediate_size=6,
    max_position_embeddings=9,
    type_vocab_size=3,
    initializer_range=1.0,
)
IDS = np.array([[1, 2, 3, 10], [4, 5, 0, 0]])


@pytest.fixture
def embeddings():
    layer = BertEmbeddings(CONFIG, dropout_stream=0)
    layer.build()
    return layer


def reference(layer, ids, segments, positions):
    total = (
        layer.word_embeddings.numpy()[ids]
        + layer.segment_embeddings.numpy()[segments]
        + layer.position_embeddings.numpy()[positions]
    )
    return (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-12)


def test_layer():
    arguments = {"config": CONFIG, "dropout_stream": 0}
    check_layer(BertEmbeddings, arguments, (IDS, IDS % 3), shape=(2, 4, 6))


def test_defaults_are_first_segment_and_running_positions(embeddings):
    expected = reference(embeddings, IDS, np.zeros_like(IDS), np.arange(4)[None, :])
    np.testing.assert_allclose(embeddings(IDS), expected, atol=1e-5)


def test_given_segments_and_restarted_positions(embeddings):
    segments = np.array([[0, 1, 2, 2], [1, 1, 0, 0]])
    positions = np.array([[0, 1, 0, 1], [8, 7, 6, 5]])
    expected = reference(embeddings, IDS, segments, positions)
    ours = embeddings(IDS, input_type_ids=segments, position_ids=positions)
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_initial_tables_are_truncated_normals(embeddings):
    for table in embeddings.weights[:3]:
        assert np.abs(table.numpy()).max() <= 2 * CONFIG.initializer_range
    assert not np.array_equal(
        embeddings.word_embeddings.numpy()[:3], embeddings.segment_embeddings.numpy()
    )
