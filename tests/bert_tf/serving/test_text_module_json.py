"""Texts inside JSON strings, for any text."""

import json

import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.serving.text_module import json_text

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_an_escaped_text_is_read_back_by_json(texts):
    found = json_text(tf.constant([text.encode() for text in texts])).numpy()
    assert [json.loads(b'"' + text + b'"') for text in found] == texts


def test_every_control_character_is_escaped():
    text = "".join(map(chr, range(0x80)))
    (found,) = json_text(tf.constant([text])).numpy()
    assert json.loads(b'"' + found + b'"') == text
