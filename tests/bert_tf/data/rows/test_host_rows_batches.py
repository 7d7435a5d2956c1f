"""Rows of texts and pairs, and batches cut from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.data.rows.host_rows import pack_host_pairs, pack_host_texts


def test_padded_batch(tokenizer):
    tokens = map(tokenizer.tokenize_texts, (["a", "a b c"], ["b", "d"]))
    rows = pack_host_pairs(*tokens, max_seq_length=7, tokenizer=tokenizer)
    batch = rows.padded(np.array([1, 0]), length=8, pad_id=0, batch_size=3)
    a, b, c, d = (tokenizer.vocab.index(letter) for letter in "abcd")
    assert batch["input_word_ids"].tolist() == [
        [2, a, b, c, 3, d, 3, 0],
        [2, a, 3, b, 3, 0, 0, 0],
        [0] * 8,
    ]
    assert batch["input_mask"].tolist() == [[1] * 7 + [0], [1] * 5 + [0] * 3, [0] * 8]
    assert batch["input_type_ids"].tolist() == [
        [0, 0, 0, 0, 0, 1, 1, 0],
        [0, 0, 0, 1, 1, 0, 0, 0],
        [0] * 8,
    ]


def test_single_texts_have_one_segment(tokenizer):
    tokens = tokenizer.tokenize_texts(["a b", ""])
    rows = pack_host_texts(tokens, max_seq_length=128, tokenizer=tokenizer)
    assert rows.offsets.tolist() == offsets_of(np.array([4, 2])).tolist()
    assert not rows.padded(np.array([0, 1]), length=4, pad_id=0)["input_type_ids"].any()


WORDS = st.lists(st.sampled_from("abcd"), max_size=12).map(" ".join)
TEXTS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5)


@pytest.mark.slow
@given(TEXTS, st.booleans(), st.integers(5, 20))
def test_every_token_is_in_the_row_or_counted_as_lost(tokenizer, pairs, single, most):
    first, second = (list(column) for column in zip(*pairs, strict=True))
    specials = 2 if single else 3
    tokens = map(tokenizer.tokenize_texts, (first,) if single else (first, second))
    pack = pack_host_texts if single else pack_host_pairs
    rows = pack(*tokens, max_seq_length=most, tokenizer=tokenizer)
    for (one, other), length, lost in zip(pairs, rows.lengths, rows.lost_tokens, strict=True):
        tokens = len(one.split()) + (0 if single else len(other.split()))
        assert length - specials + lost == tokens
        assert length <= most and (lost == 0 or length == most)
