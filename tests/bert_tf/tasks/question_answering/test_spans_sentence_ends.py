"""Texts that hold the end of a sentence; Python and TensorFlow agree on them."""

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.serving.signatures import SENTENCE_END
from bert_tf.tasks.question_answering.spans import runs_over_sentence_end


@pytest.mark.parametrize(
    "text",
    [
        "1873. It lies",
        "were united. It",
        'he said "go home." Then',
        "(see below.) The",
        "really? Yes",
        "in the city. “A",
        "over. Ünder",
        "北京。上海",
        "a title\n\nthe text",
        "line one.\nNext",
    ],
)
def test_a_sentence_ends_within(text):
    assert runs_over_sentence_end(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "were united.",
        "St. Louis",
        "Mrs. Smith",
        "J. R. R. Tolkien",
        "the U.S. Army",
        "No. 5",
        "approx. 5 km",
        "3.5 Million",
        "e.g. London",
        "the towns of Buda, Óbuda and Pest",
        "yahoo.com",
        "a wrapped\nLine",
        "what? he said",
    ],
)
def test_no_sentence_ends_within(text):
    assert not runs_over_sentence_end(text)


PARTS = st.sampled_from([*"ab A. ?!…。\"')”»5\n\t\r\u00a0é上", "Zürich. ", "text. The", "\0"])


@given(st.lists(st.lists(PARTS, max_size=8).map("".join), min_size=1, max_size=8))
def test_the_pattern_means_the_same_to_tensorflow(texts):
    found = tf.strings.regex_full_match(texts, f"(?s).*(?:{SENTENCE_END}).*")
    assert found.numpy().tolist() == [runs_over_sentence_end(text) for text in texts]
