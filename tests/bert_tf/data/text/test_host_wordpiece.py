"""The tokenizer without TensorFlow against the one that exported graphs hold."""

import dataclasses
import string
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.text.casing import KEEP_ACCENTS
from bert_tf.data.text.host_wordpiece import HostTokenizer, longest_match
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.data.text.wordpiece import WordPieceTokenizer

LETTERS = string.ascii_letters + string.digits + "éßøαβγωбвгдийאבחكلمกขคのカ中文字한국½™"
WORDS = ["the", "##ing", "un", "##aff", "##able", "hello", "world", "##s", "straße"]
VOCAB = list(
    dict.fromkeys(
        [*SPECIAL_TOKENS, *WORDS, *LETTERS, *string.punctuation, *(f"##{c}" for c in LETTERS)]
    )
)


@pytest.fixture(scope="module", params=[True, KEEP_ACCENTS, False], ids=str)
def pair(request):
    return (
        WordPieceTokenizer(VOCAB, lowercase=request.param),
        HostTokenizer(VOCAB, lowercase=request.param),
    )


def check_same_ids(pair, texts):
    graph, host = pair
    expected = graph.tokenize(tf.constant(texts, tf.string))
    found = host.tokenize_texts(texts)
    assert found.offsets.tolist() == expected.row_splits.numpy().tolist()
    assert found.ids.tolist() == expected.flat_values.numpy().tolist()


def check_same(pair, texts):
    check_same_ids(pair, texts)
    graph, host = pair
    with_characters = host.tokenize_with_characters(texts)
    for name, values in dataclasses.asdict(graph.tokenize_with_characters(texts)).items():
        np.testing.assert_array_equal(getattr(with_characters, name), values, name)


def code_points():
    """All characters, and one of 16 code points of private use or without a character."""
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    return [c for c in every if unicodedata.category(c) not in ("Cn", "Co") or ord(c) % 16 == 1]


@pytest.mark.slow
def test_every_code_point_is_dropped_split_or_kept_alike(pair):
    words = [f"h{c}s" for c in code_points()]
    check_same_ids(pair, words)
    check_same(pair, [" ".join(words[begin : begin + 256]) for begin in range(0, 0x3100, 256)])


def test_difficult_texts(pair):
    check_same(
        pair,
        [
            "",
            " \t\r\n\u00a0\u2028\u3000",
            "[MASK] [CLS]a[SEP] [unused1]",
            "café cafe\u0301 CAF\u00c9 İstanbul ΟΔΟΣ STRASSE straße ẞ",
            "soft\u00adhyphen zero\u200bwidth bom\ufeff rain\x12s to\x00day \ufffd",
            "½™ﬁ１２３ＡＢＣ 中文字 mixed中文mixed 한국 のカ。\uff0c",
            "😀 smile👩‍👩‍👧 \U0001f1e9\U0001f1ea don't—stop…",
            "a" * 100 + " " + "a" * 400 + " " + "a" * 401,
            "é" * 200 + " " + "é" * 201 + " " + "ก" * 133 + " " + "ก" * 134,
            "unaffable worlds " * 2000,
        ],
    )


@pytest.mark.slow
@fewer_examples(0.7)
@given(
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
            st.text(LETTERS + " .-'\t\u00ad\u200b\u0301", max_size=40),
        ),
        max_size=6,
    )
)
def test_any_text(pair, texts):
    check_same(pair, texts)


def test_words_are_forgotten_when_there_are_many(pair, monkeypatch):
    monkeypatch.setattr("bert_tf.data.text.host_wordpiece._MOST_WORDS", 3)
    check_same(pair, ["the world sings the un able hello s worlds the"] * 2)
    assert len(pair[1]._ids_of_word) <= 3


@pytest.mark.parametrize(
    ("word", "expected"),
    [("abc", [2, 3]), ("##cb", [3, 4]), ("ca", []), ("##", []), ("ab", [2])],
)
def test_words_are_split_longest_match_first(word, expected):
    ids = {"[UNK]": 0, "a": 1, "ab": 2, "##c": 3, "##b": 4}
    assert longest_match(word, ids, longest=3) == expected
