"""Segment pairs: the properties of the reference's algorithm on any documents."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.base.kernels import combine_keys, seed_key
from bert_tf.data.examples.flat_documents import FlatDocuments
from bert_tf.data.examples.segments import (
    RandomNextChoices,
    no_other_document,
    segment_pairs,
)


def any_other_document(documents: int) -> RandomNextChoices:
    """Every document may be followed by every other one."""
    numbers = np.arange(documents, dtype=np.int64)
    return RandomNextChoices(
        np.zeros_like(numbers), np.full_like(numbers, documents), numbers, numbers + 1
    )


def documents_of(sentence_lengths: list[list[int]]) -> FlatDocuments:
    """Documents whose tokens are numbered from 0, so that a token tells where it stood."""
    lengths = np.array([length for document in sentence_lengths for length in document], np.int64)
    return FlatDocuments(
        np.arange(lengths.sum(), dtype=np.int32),
        offsets_of(lengths),
        offsets_of(np.array([len(document) for document in sentence_lengths])),
    )


def keys_for(documents: FlatDocuments, number: int = 0) -> np.ndarray:
    keys = combine_keys(np.arange(len(documents), dtype=np.uint64), seed_key(1, "test"))
    return combine_keys(keys, np.uint64(number))


def make_pairs(documents, *, number=0, choices=None, **settings):
    settings = {"max_seq_length": 128, "short_seq_prob": 0.1, **settings}
    choices = choices or any_other_document(len(documents))
    return segment_pairs(documents, keys_for(documents, number), choices, **settings)


corpora = st.lists(
    st.lists(st.integers(1, 30), min_size=1, max_size=12), min_size=1, max_size=6
).map(documents_of)


def test_the_rows_of_the_docstring():
    pairs, left_out = make_pairs(documents_of([[3, 2, 4]]), max_seq_length=8, short_seq_prob=0.0)
    assert left_out == 0
    bounds = ["first_start", "first_length", "second_start", "second_length"]
    assert pairs[bounds].tolist()[0] == (0, 3, 3, 2)
    first_start, first_length, second_start, second_length = pairs[bounds].tolist()[1]
    assert (first_start, first_length, second_length) == (3, 2, 3)
    assert second_start in (5, 6)  # one token of its four is cut, from the front or the back
    assert pairs[["label", "is_truncated"]].tolist() == [(False, False), (False, True)]


def test_an_empty_pool_makes_nothing():
    pairs, left_out = make_pairs(documents_of([]))
    assert len(pairs) == left_out == 0


@given(
    documents=corpora,
    number=st.integers(0, 1000),
    max_seq_length=st.integers(8, 64),
    short_seq_prob=st.sampled_from([0.0, 0.5, 1.0]),
    random_next_prob=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_pairs_fit_and_come_from_where_they_say(documents, **settings):
    pairs, _ = make_pairs(documents, **settings)
    token_borders = documents.sentence_offsets[documents.document_offsets]
    first_ends = pairs["first_start"] + pairs["first_length"]
    second_ends = pairs["second_start"] + pairs["second_length"]
    assert (pairs["first_length"] >= 1).all() and (pairs["second_length"] >= 1).all()
    assert (pairs["first_length"] + pairs["second_length"] <= settings["max_seq_length"] - 3).all()
    assert (pairs["first_start"] >= token_borders[pairs["document"]]).all()
    assert (first_ends <= token_borders[pairs["document"] + 1]).all()
    second_documents = np.searchsorted(token_borders, pairs["second_start"], side="right") - 1
    assert (second_ends <= token_borders[second_documents + 1]).all()
    assert ((second_documents == pairs["document"]) == ~pairs["label"]).all()
    follows = ~pairs["label"]
    assert (pairs["second_start"] >= first_ends)[follows].all()
    whole = follows & ~pairs["is_truncated"]
    assert (pairs["second_start"] == first_ends)[whole].all()
    assert len(np.unique(pairs["key"])) == len(pairs)
    if settings["random_next_prob"] == 1.0 and len(documents) > 1:
        assert pairs["label"].all()


@given(documents=corpora, number=st.integers(0, 1000))
def test_every_sentence_is_used_once_since_unused_ones_go_back(documents, number):
    # Room for everything, so that nothing is cut; chunks end where a short target is reached.
    pairs, left_out = make_pairs(
        documents, number=number, max_seq_length=10_000, short_seq_prob=0.0
    )
    used = [
        np.arange(pair["first_start"], pair["first_start"] + pair["first_length"])
        if pair["label"]
        else np.arange(pair["first_start"], pair["second_start"] + pair["second_length"])
        for pair in pairs
    ]
    used = np.concatenate(used) if used else np.empty(0)
    assert (np.diff(used) == 1).all() or left_out
    if len(documents) > 1:
        assert len(used) == len(documents.tokens)


def test_a_chunk_of_one_sentence_is_always_followed_at_random():
    documents = documents_of([[9] * 20, [9] * 20])
    pairs, left_out = make_pairs(
        documents, max_seq_length=10, short_seq_prob=0.0, random_next_prob=0.0
    )
    assert len(pairs) == 40 and pairs["label"].all() and left_out == 0


def test_one_document_has_no_random_next_and_leaves_single_sentences_out():
    pairs, left_out = make_pairs(
        documents_of([[2] * 21]), max_seq_length=8, short_seq_prob=0.0, random_next_prob=1.0
    )
    assert not pairs["label"].any()
    assert len(pairs) == 7 and left_out == 0
    pairs, left_out = make_pairs(documents_of([[9, 9, 9]]), max_seq_length=8, short_seq_prob=0.0)
    assert len(pairs) == 1
    assert left_out == 2  # the last one goes with the one before it


def test_a_copy_is_never_its_own_random_next():
    documents = documents_of([[4] * 40] * 4)
    copies = RandomNextChoices(
        low=np.zeros(4, np.int64),
        high=np.full(4, 4),
        own_low=np.array([0, 1, 1, 3]),
        own_high=np.array([1, 3, 3, 4]),
    )
    assert copies.count().tolist() == [3, 2, 2, 3]
    seconds = [set() for _ in range(4)]
    for number in range(50):
        pairs, _ = make_pairs(documents, number=number, choices=copies, random_next_prob=1.0)
        for pair in pairs:
            seconds[pair["document"]].add(int(pair["second_start"]) // 160)
    assert seconds == [{1, 2, 3}, {0, 3}, {0, 3}, {0, 1, 2}]


def test_shares_and_random_choices_are_as_stated():
    documents = documents_of([[5] * 500] * 20)
    pairs = np.concatenate(
        [make_pairs(documents, number=number, short_seq_prob=0.0)[0] for number in range(10)]
    )
    assert len(pairs) > 5000
    assert abs(pairs["label"].mean() - 0.5) < 0.03
    others = (pairs["second_start"] // 2500)[pairs["label"]]
    assert np.bincount(others, minlength=20).min() > 0.6 * len(others) / 20


def test_a_share_of_documents_is_cut_into_shorter_chunks():
    documents = documents_of([[1] * 1000] * 400)
    pairs, _ = make_pairs(documents, random_next_prob=0.0, short_seq_prob=0.25)
    lengths = pairs["first_length"] + pairs["second_length"]
    longest = np.zeros(400, np.int64)
    np.maximum.at(longest, pairs["document"], lengths)
    assert 0.18 < (longest < 125).mean() < 0.32
    assert longest.min() < 20 and (longest <= 125).all()


def test_cutting_takes_from_the_longer_segment_and_from_both_ends():
    documents = documents_of([[101, 201]] * 40)
    pairs, _ = make_pairs(documents, max_seq_length=103, short_seq_prob=0.0, random_next_prob=0.0)
    followed = pairs[~pairs["label"]]
    assert len(followed) == 0  # 101 tokens fill a chunk alone
    documents = documents_of([[60, 240]] * 40)
    pairs, _ = make_pairs(documents, max_seq_length=103, short_seq_prob=0.0, random_next_prob=0.0)
    assert pairs["is_truncated"].all() and not pairs["label"].any()
    assert (pairs["first_length"] == 50).all() and (pairs["second_length"] == 50).all()
    cut_in_front = pairs["second_start"] - pairs["document"] * 300 - 60
    assert cut_in_front.min() > 60 and cut_in_front.max() < 130
    assert abs(cut_in_front.mean() - 95) < 5


def test_equal_keys_make_equal_pairs_and_passes_differ():
    documents = documents_of([[3, 5, 7] * 20] * 5)
    once, again, other = (make_pairs(documents, number=number)[0] for number in (0, 0, 1))
    assert once.tolist() == again.tolist()  # not the bytes: between fields there is padding
    assert once.tolist() != other.tolist()


def test_swapped_segments_are_those_in_order_the_other_way_round():
    documents = documents_of([[3] * 40 for _ in range(3000)])
    none = no_other_document(3000)
    ordered, left_out = make_pairs(documents, choices=none, short_seq_prob=0.0)
    swapped, _ = make_pairs(documents, choices=none, short_seq_prob=0.0, swap_prob=1.0)
    assert left_out == 0 and not ordered["label"].any() and swapped["label"].all()
    for ours, theirs in (("first", "second"), ("second", "first")):
        for field in ("start", "length"):
            # A document has one pair: the draw of the swap changes the cuts that follow.
            np.testing.assert_array_equal(ordered[f"{ours}_{field}"], swapped[f"{theirs}_{field}"])
    mixed, _ = make_pairs(documents, choices=none, swap_prob=0.5)
    assert abs(mixed["label"].mean() - 0.5) < 0.03
    before, after = mixed["first_start"], mixed["second_start"]
    assert ((before > after) == mixed["label"]).all()
