"""Texts and characters of spans that are given in bytes."""

import itertools

import numpy as np
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.serving.graphs.spans import characters_at_bytes, code_points_at_bytes, cut_texts


def places_of(spans, width):
    """Columns of spans as int64 [spans] each, however few there are."""
    return np.array(spans, np.int64).reshape(-1, width).T


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=4), st.data())
@fewer_examples(0.5)
def test_spans_are_cut_at_their_bytes(texts, data):
    spans = []
    for owner, text in enumerate(texts):
        borders = data.draw(st.sets(st.integers(0, len(text)), max_size=6).map(sorted))
        spans += [(owner, *ends) for ends in itertools.pairwise(borders)]
    owners, starts, ends = places_of(spans, 3)
    found = cut_texts(tf.constant(texts), tf.constant(owners, tf.int32), starts, ends)
    assert found.numpy().tolist() == [texts[owner][start:end] for owner, start, end in spans]


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4))
@fewer_examples(0.5)
def test_characters_at_bytes_are_those_of_python(texts):
    characters = [(owner, place) for owner, text in enumerate(texts) for place in range(len(text))]
    places = [(owner, place, len(texts[owner][:place].encode())) for owner, place in characters]
    owners, expected, offsets = places_of(places, 3)
    given_texts = tf.constant([text.encode() for text in texts])
    owners = tf.constant(owners, tf.int32)
    assert characters_at_bytes(given_texts, owners, offsets).numpy().tolist() == expected.tolist()
    codes = code_points_at_bytes(given_texts, owners, offsets)
    assert codes.numpy().tolist() == [ord(texts[owner][place]) for owner, place in characters]
