"""The parts that are kept of texts longer than a sequence."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.config.sections.finetuning import HEAD_TAIL, LONG_TEXTS, WINDOWS
from bert_tf.data.rows.host_rows import pack_host_texts
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.graphs.table import pack_texts

LENGTHS = st.lists(st.integers(0, 60), min_size=1, max_size=5)
MOST = st.sampled_from([3, 4, 9, 24])
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcd"]


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(VOCAB, lowercase=True)


@functools.cache
def pack_function(tokenizer, method, most):
    """`pack_texts` as a graph, traced once."""
    return tf.function(
        lambda tokens: pack_texts(tokens, method=method, max_seq_length=most, tokenizer=tokenizer),
        input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)],
    )


def packed(tokenizer, lengths, method, most):
    """Return the tokens of each sequence without specials, and its text.

    The tokens count from 100.
    """
    tokens = tf.RaggedTensor.from_row_lengths(
        100 + np.arange(sum(lengths), dtype=np.int32), lengths
    )
    found = pack_function(tokenizer, method, most)(tokens)
    rows = found.word_ids.to_list()
    assert all((row[0], row[-1]) == (tokenizer.cls_id, tokenizer.sep_id) for row in rows)
    assert not any(map(any, found.type_ids.to_list()))
    return tokens.to_list(), [row[1:-1] for row in rows], found.owners.numpy().tolist()


@pytest.mark.slow
@given(lengths=LENGTHS, most=MOST)
def test_windows_hold_every_token_and_overlap(tokenizer, lengths, most):
    texts, rows, owners = packed(tokenizer, lengths, WINDOWS, most)
    room = most - 2
    assert owners == sorted(owners)
    for number, text in enumerate(texts):
        windows = [row for row, owner in zip(rows, owners, strict=True) if owner == number]
        assert {token for window in windows for token in window} == set(text)
        assert {len(window) for window in windows} == {min(len(text), room)}
        for one, other in itertools.pairwise(windows):
            assert room // 4 <= len(set(one) & set(other)) < room
        assert len(windows) == 1 or len(windows) <= 1 + len(text) / (room - room // 4)


@pytest.mark.slow
@given(lengths=LENGTHS, most=MOST)
def test_head_and_tail_are_the_ends_of_a_text(tokenizer, lengths, most):
    texts, rows, owners = packed(tokenizer, lengths, HEAD_TAIL, most)
    assert owners == list(range(len(texts)))
    room = most - 2
    head = round(room * 128 / 510)
    for text, row in zip(texts, rows, strict=True):
        assert row == (text if len(text) <= room else text[:head] + text[len(text) - room + head :])


@pytest.mark.slow
def test_head_and_tail_of_512_tokens_are_those_of_the_paper(tokenizer):
    """Sun et al. 2019, section 5.3.1: the first 128 and the last 382 tokens."""
    (text,), (row,), _ = packed(tokenizer, [900], HEAD_TAIL, 512)
    assert row == text[:128] + text[-382:]


@pytest.mark.slow
@given(lengths=LENGTHS, most=MOST, method=st.sampled_from(LONG_TEXTS))
def test_tokens_that_no_sequence_has_are_lost(tokenizer, lengths, most, method):
    tokens = tf.RaggedTensor.from_row_lengths(
        100 + np.arange(sum(lengths), dtype=np.int32), lengths
    )
    found = pack_texts(tokens, method=method, max_seq_length=most, tokenizer=tokenizer)
    kept = set(found.word_ids.flat_values.numpy().tolist())
    lost = [len(set(text) - kept) for text in tokens.to_list()]
    assert found.lost_tokens.numpy().tolist() == lost


@pytest.mark.parametrize("method", LONG_TEXTS)
def test_rows_know_their_texts_and_what_they_lack(tokenizer, method):
    texts = ["a b c d " * 3, "", "a b", "d c b a " * 2]
    tokens = tokenizer.tokenize_texts(texts)
    rows = pack_host_texts(tokens, method=method, max_seq_length=8, tokenizer=tokenizer)
    if method == WINDOWS:
        assert rows.owners.tolist() == [0, 0, 0, 1, 2, 3, 3]
        assert not rows.lost_tokens.any()
        assert rows.lengths.tolist() == [8, 8, 8, 2, 4, 8, 8]
        firsts = rows.selected(np.array([0, 3, 4, 5]))
        heads = pack_host_texts(tokens, max_seq_length=8, tokenizer=tokenizer)
        assert firsts.ids.tolist() == heads.ids.tolist()
    else:
        assert rows.owners is None
        assert rows.lost_tokens.tolist() == [6, 0, 0, 2]
        assert rows.lengths.tolist() == [8, 2, 4, 8]
