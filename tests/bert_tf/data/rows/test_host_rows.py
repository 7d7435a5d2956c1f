"""Rows made without TensorFlow against those that exported graphs make."""

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.config.sections.finetuning import LONG_TEXTS, WINDOWS
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import pack_host_pairs, pack_host_texts
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.wordpiece import pack_pairs
from bert_tf.serving.graphs.table import pack_texts

WORDS = st.lists(st.sampled_from("abcd"), max_size=40).map(" ".join)


@pytest.fixture(scope="module")
def host(tokenizer):
    return HostTokenizer(tokenizer.vocab, lowercase=True)


def check_same(found: EncodedRows, expected: EncodedRows) -> None:
    for name in ("ids", "offsets", "second_starts", "lost_tokens"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    if found.owners is not None:
        assert found.owners.tolist() == expected.owners.tolist()
    else:
        assert expected.owners is None


@pytest.mark.slow
@given(
    texts=st.lists(WORDS, min_size=1, max_size=5),
    method=st.sampled_from(LONG_TEXTS),
    most=st.integers(3, 24),
)
def test_texts(tokenizer, host, texts, method, most):
    tokens = tokenizer.tokenize(tf.constant(texts))
    made = pack_texts(tokens, method=method, max_seq_length=most, tokenizer=tokenizer)
    lengths = made.word_ids.row_lengths().numpy()
    expected = EncodedRows(
        ids=made.word_ids.flat_values.numpy(),
        offsets=offsets_of(lengths),
        second_starts=lengths,
        lost_tokens=np.zeros(len(lengths)) if method == WINDOWS else made.lost_tokens.numpy(),
        owners=made.owners.numpy() if method == WINDOWS else None,
    )
    found = pack_host_texts(
        host.tokenize_texts(texts), method=method, max_seq_length=most, tokenizer=host
    )
    check_same(found, expected)


@pytest.mark.slow
@fewer_examples(0.4)
@given(pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5), most=st.integers(5, 24))
def test_pairs(tokenizer, host, pairs, most):
    first, second = (list(column) for column in zip(*pairs, strict=True))
    tokens = [tokenizer.tokenize(tf.constant(column)) for column in (first, second)]
    word_ids, type_ids = pack_pairs(*tokens, max_seq_length=most, tokenizer=tokenizer)
    lengths = word_ids.row_lengths().numpy()
    expected = EncodedRows(
        ids=word_ids.flat_values.numpy(),
        offsets=offsets_of(lengths),
        second_starts=lengths - tf.reduce_sum(type_ids, axis=1).numpy(),
        lost_tokens=sum(each.row_lengths().numpy() for each in tokens) + 3 - lengths,
    )
    found = pack_host_pairs(
        host.tokenize_texts(first), host.tokenize_texts(second), max_seq_length=most, tokenizer=host
    )
    check_same(found, expected)


@pytest.mark.parametrize("method", LONG_TEXTS)
def test_no_texts_are_no_rows(host, method):
    rows = pack_host_texts(host.tokenize_texts([]), method=method, max_seq_length=8, tokenizer=host)
    assert len(rows) == 0 and len(rows.ids) == 0
