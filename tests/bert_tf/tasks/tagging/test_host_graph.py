"""The outputs of an exported graph against the same in NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.serving.graphs.tagging import EntityWriter, graph_words
from bert_tf.tasks.tagging.host import encode_words, prediction_columns
from bert_tf.tasks.tagging.schemes import scheme_tags
from bert_tf.tasks.tagging.task import entity_tags
from bert_tf.tasks.tagging.words import TaggedWords, joined_words

KINDS = ['per"son', "loc\\ation", "ü"]
SCHEMES = ["bio", "bilou", "iobes", "plain"]
ALPHABET = [
    *"adonlst'\",\\./ \t\n\r\x00\x01\x1f\x7f",
    "é",
    "北",
    "\u2028",
    "😀",
    "\u200b",
    "。",
    "ª",
]


@pytest.mark.slow
@given(
    st.lists(st.text(st.sampled_from(ALPHABET), max_size=40), min_size=1, max_size=3),
    st.sampled_from(SCHEMES),
    st.integers(4, 16),
    st.integers(1, 16),
    st.integers(0, 2**32 - 1),
)
@fewer_examples(0.3)
def test_the_graph_writes_what_numpy_does(pieces, texts, scheme, length, stride, seed):
    labels = ("O", *scheme_tags(KINDS, scheme))
    words = encode_words(pieces, texts, max_seq_length=length, stride=stride)
    given_texts = tf.constant([text.encode() for text in texts])
    served = graph_words(pieces, given_texts, max_seq_length=length, stride=stride)
    np.testing.assert_array_equal(served.word_ids.flat_values, words.rows.ids)
    np.testing.assert_array_equal(served.word_ids.row_lengths(), words.rows.lengths)
    np.testing.assert_array_equal(served.window, words.windows)
    np.testing.assert_array_equal(served.position, words.positions)

    generator = np.random.default_rng(seed)
    count = len(words.positions)
    tags = generator.integers(0, len(labels), count)
    scores = generator.random(count, np.float32)
    found = TaggedWords(words=words.words, tags=[labels[tag] for tag in tags], scores=scores)
    expected = prediction_columns(texts, joined_words(texts, found, scheme), scheme)
    written = EntityWriter(entity_tags(labels, scheme)).outputs(
        given_texts, served, tf.constant(tags, tf.int32), tf.constant(scores)
    )
    np.testing.assert_allclose(written["mean_score"], expected["mean_score"], rtol=1e-5)
    for name in ("predicted_entities", "predicted_tags"):
        rows = [json.loads(row) for row in written[name].numpy()]
        found, wanted = (
            [[{**item, "score": None} for item in row] for row in table]
            for table in (rows, expected[name])
        )
        assert found == wanted
        found, wanted = (
            [item["score"] for row in table for item in row] for table in (rows, expected[name])
        )
        np.testing.assert_allclose(found, wanted, atol=2e-6)
