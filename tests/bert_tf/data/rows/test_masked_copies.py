"""Each token of a text is masked in one copy; likelihoods are sums over the copies of a text."""

import numpy as np
import pytest

from bert_tf.data.rows.masked_copies import (
    MaskedCopies,
    likelihoods_of,
    target_log_probabilities,
)
from bert_tf.data.text.host_wordpiece import Tokens


class Specials:
    cls_id = 100
    sep_id = 101
    mask_id = 102


def copies_of(*texts, length=6):
    offsets = np.cumsum([0, *map(len, texts)])
    tokens = Tokens(np.array([token for text in texts for token in text], np.int32), offsets)
    return MaskedCopies.of(tokens, max_seq_length=length, tokenizer=Specials())


def test_each_token_is_masked_once():
    copies = copies_of([7, 8], [], [9])
    batch = copies.padded(np.array([0, 1, 2]), length=5, pad_id=0)
    assert batch["input_word_ids"].tolist() == [
        [100, 102, 8, 101, 0],
        [100, 7, 102, 101, 0],
        [100, 102, 101, 0, 0],
    ]
    assert batch["input_mask"].sum(axis=1).tolist() == [4, 4, 3]
    assert not batch["input_type_ids"].any()
    assert copies.targets.tolist() == [7, 8, 9]
    assert copies.texts.tolist() == [0, 0, 2]
    assert copies.counts.tolist() == [2, 0, 1]


def test_copies_are_cut_out_in_any_order():
    copies = copies_of([7, 8, 9], [1, 2])
    batch = copies.padded(np.array([4, 1]), length=5, pad_id=0)
    assert batch["input_word_ids"].tolist() == [[100, 1, 102, 101, 0], [100, 7, 102, 9, 101]]


def test_a_text_that_does_not_fit_has_no_copy():
    copies = copies_of([1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7], [5])
    assert copies.excess.tolist() == [0, 3, 0]
    assert copies.counts.tolist() == [4, 0, 1]
    assert len(copies) == 5


def test_memory_grows_with_tokens_and_not_with_copies():
    copies = copies_of(list(range(1000)), length=1002)
    assert len(copies) == 1000
    assert sum(value.nbytes for value in vars(copies).values() if hasattr(value, "nbytes")) < 1e5


def test_likelihoods_are_sums_and_perplexities_are_per_token():
    copies = copies_of([7, 8], [], [9])
    totals, perplexities = likelihoods_of(copies, np.log([0.5, 0.125, 0.25]))
    np.testing.assert_allclose(totals, [np.log(1 / 16), 0, np.log(0.25)])
    np.testing.assert_allclose(perplexities, [4, 1, 4])
    assert np.isfinite(likelihoods_of(copies, np.full(3, -1e4)).perplexities).all()


def test_log_probabilities_are_those_of_the_softmax():
    logits = np.array([[1.0, 2.0, 3.0], [1000.0, 0.0, 0.0]], np.float32)
    found = target_log_probabilities(logits, np.array([2, 1]))
    softmax = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    assert found[0] == pytest.approx(np.log(softmax[2]))
    assert found[1] == pytest.approx(-1000)
