"""Savings of added entries: the tokens that the corpus is shorter by, and entries left out."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline.vocabulary.savings import entries_that_pay, pieces_of

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BASE = [*SPECIALS, "c", "a", "t", "##c", "##a", "##t", "##s", "cat"]
WORDS = pa.array(["cats", "catcat", "tact", "cat", "é"])
COUNTS = np.array([10, 3, 2, 5, 4])
ADDED = ["cats", "catcat", "tact", "##cat", "é"]


def found(min_saving):
    return entries_that_pay(
        [*BASE, *ADDED], WORDS, COUNTS, num_base=len(BASE), min_saving=min_saving
    )


@pytest.mark.parametrize(
    ("entry", "pieces"),
    [("cats", 2), ("tact", 4), ("##cat", 3), ("catcat", 4), ("é", 0), ("cat", 1)],
)
def test_entries_are_written_with_the_longest_pieces_of_the_base(entry, pieces):
    assert pieces_of(entry, set(BASE)) == pieces


def test_savings_are_uses_times_tokens_saved_and_add_up():
    """`##cat` is in no word, since `catcat` is an entry; `é` was [UNK], one token."""
    result = found(0)
    assert {each.entry: each.tokens for each in result.savings} == {
        "cats": 10,
        "catcat": 9,
        "tact": 6,
        "##cat": 0,
        "é": 0,
    }
    assert result.tokens_before == 10 * 2 + 3 * 4 + 2 * 4 + 5 + 4
    assert result.tokens_before - result.tokens == 25
    assert result.pieces == [*BASE, *ADDED]
    assert [each.tokens for each in result.savings] == [10, 9, 6, 0, 0]


def test_entries_that_save_too_little_are_left_out_and_others_are_used_instead():
    """If `catcat` is not there, `##cat` saves 2 of its tokens in 3 words."""
    result = found(10)
    assert result.pieces == [*BASE, "cats", "é"]
    assert result.left_out == 3
    result = found(7)
    assert result.pieces == [*BASE, "cats", "catcat", "é"]


def test_what_could_not_be_written_before_stays():
    assert found(10**6).pieces == [*BASE, "é"]


def test_an_entry_pays_once_another_has_gone():
    """`catcat` saves 3 tokens and `##cat` 8; without `catcat`, `##cat` is in its word, too."""
    pieces = [*BASE, "##cat", "catcat"]
    words, counts = pa.array(["catcat", "acat"]), np.array([1, 4])
    result = entries_that_pay(pieces, words, counts, num_base=len(BASE), min_saving=10)
    assert result.pieces == [*BASE, "##cat"]
    assert [each.tokens for each in result.savings] == [10]
