"""Sentences too long for a pair of segments: cut into parts that reach an example, others kept."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.base.kernels import combine_keys, seed_key
from bert_tf.data.examples.flat_documents import FlatDocuments, cut_long_sentences
from bert_tf.data.examples.segments import RandomNextChoices, segment_pairs

WHOLE_WORDS = np.ones(2, np.bool_)
BEGINS_WORD = np.array([False, True])


def documents_of(documents: list[list[int]], tokens: np.ndarray | None = None) -> FlatDocuments:
    offsets = offsets_of(np.array([length for lengths in documents for length in lengths]))
    return FlatDocuments(
        np.zeros(offsets[-1], np.int32) if tokens is None else tokens,
        offsets,
        offsets_of(np.array([len(lengths) for lengths in documents])),
    )


def lengths_of(documents: FlatDocuments) -> list[list[int]]:
    return [
        np.diff(documents.sentence_offsets[begin : end + 1]).tolist()
        for begin, end in itertools.pairwise(documents.document_offsets)
    ]


def test_the_docstrings_example():
    cut, count = cut_long_sentences(documents_of([[9, 2], [5, 4]]), WHOLE_WORDS, max_seq_length=11)
    assert lengths_of(cut) == [[1, 2, 2, 2, 2, 2], [1, 2, 2, 4]]
    assert count == 2


def test_documents_of_short_sentences_stay_as_they_are():
    lengths = [[62, 62, 1], [100, *[20] * 6]]
    kept, count = cut_long_sentences(documents_of(lengths), WHOLE_WORDS, max_seq_length=128)
    assert (lengths_of(kept), count) == (lengths, 0)


def test_a_document_alone_keeps_sentences_up_to_half_a_pair():
    kept, count = cut_long_sentences(
        documents_of([[62, 100, *[20] * 6]]), WHOLE_WORDS, max_seq_length=128
    )
    assert (lengths_of(kept), count) == ([[62, 25, 25, 25, 25, *[20] * 6]], 1)


def test_parts_begin_with_words_unless_a_word_is_longer_than_a_part():
    tokens = np.array([1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0], np.int32)
    cut, _ = cut_long_sentences(documents_of([[12]], tokens), BEGINS_WORD, max_seq_length=14)
    assert cut.sentence_offsets.tolist() == [0, 2, 3, 5, 8, 10, 12]


@given(
    st.lists(st.lists(st.integers(1, 90), min_size=1, max_size=6), min_size=1, max_size=6),
    st.integers(8, 40),
    st.integers(0, 9),
)
def test_no_token_is_lost_moved_or_in_a_sentence_that_is_too_long(documents, longest, seed):
    tokens = np.random.default_rng(seed).integers(0, 2, sum(map(sum, documents))).astype(np.int32)
    before = documents_of(documents, tokens)
    after, count = cut_long_sentences(before, BEGINS_WORD, max_seq_length=longest)
    assert after.tokens is tokens
    assert set(before.sentence_offsets) <= set(after.sentence_offsets.tolist())
    assert (np.diff(after.sentence_offsets) > 0).all()
    assert np.diff(after.sentence_offsets).max() <= longest - 3
    ends = before.sentence_offsets[before.document_offsets]
    assert (after.sentence_offsets[after.document_offsets] == ends).all()
    assert (count == 0) == (after.num_sentences == before.num_sentences)


@pytest.mark.parametrize(
    "documents",
    [
        [[600]] * 30,
        [[420, 420, 420]] * 20,
        [[120] * 10] * 30,
        [[100] * 10] * 30,
        [[110]] * 60,
        [[70, 20, 20, 20] * 5] * 30,
    ],
)
def test_every_token_is_in_some_pair_within_the_passes(documents):
    documents, _ = cut_long_sentences(documents_of(documents), WHOLE_WORDS, max_seq_length=128)
    numbers = np.arange(len(documents))
    choices = RandomNextChoices(
        np.zeros_like(numbers), np.full_like(numbers, len(numbers)), numbers, numbers + 1
    )
    keys = combine_keys(numbers.astype(np.uint64), seed_key(1, "documents"))
    is_covered = np.zeros(len(documents.tokens), np.bool_)
    for number in range(10):
        pairs, _ = segment_pairs(
            documents,
            combine_keys(keys, np.uint64(number)),
            choices,
            max_seq_length=128,
            short_seq_prob=0.1,
        )
        for start, length in (("first_start", "first_length"), ("second_start", "second_length")):
            for pair in pairs:
                is_covered[pair[start] : pair[start] + pair[length]] = True
    assert is_covered.mean() >= 0.99
