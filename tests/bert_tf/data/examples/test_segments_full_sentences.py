"""Sequences of whole sentences: the documented case, and properties on any documents."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.data.examples.flat_documents import FlatDocuments
from bert_tf.data.examples.segments import full_sentences, separate_documents

SEP = 3


def documents_of(lengths: list[list[int]]) -> FlatDocuments:
    """Documents of sentences of these lengths; tokens count up from 10."""
    flat = [length for document in lengths for length in document]
    return FlatDocuments(
        np.arange(10, 10 + sum(flat), dtype=np.int32),
        offsets_of(np.array(flat)),
        offsets_of(np.array([len(document) for document in lengths])),
    )


def cut(documents, *, first_of_split=None, max_seq_length=7, short=0.0, shifted=False, seed=0):
    keys = np.arange(len(documents), dtype=np.uint64) + np.uint64(seed)
    return full_sentences(
        documents,
        keys,
        first_of_split=len(documents) if first_of_split is None else first_of_split,
        max_seq_length=max_seq_length,
        short_seq_prob=short,
        shifted=shifted,
    )


def texts(documents, sequences):
    tokens = separate_documents(documents, SEP)
    return [
        tokens[one["first_start"] : one["first_start"] + one["first_length"]].tolist()
        for one in sequences
    ]


def test_the_documented_case():
    documents = documents_of([[3, 2], [2, 4]])
    made = texts(documents, cut(documents))
    assert made == [[10, 11, 12, 13, 14], [15, 16], [17, 18, 19, 20]]


def test_a_separator_is_between_documents_but_not_at_the_ends():
    documents = documents_of([[2], [2], [3]])
    assert texts(documents, cut(documents)) == [[10, 11, SEP, 12, 13], [14, 15, 16]]


def test_a_long_sentence_is_cut_into_rows():
    documents = documents_of([[1, 12, 1]])
    made = texts(documents, cut(documents))
    assert [len(text) for text in made] == [1, 5, 5, 3]


def test_no_sequence_goes_beyond_the_split():
    documents = documents_of([[1], [1], [1], [1]])
    sequences = cut(documents, first_of_split=1)
    assert texts(documents, sequences) == [[10], [11, SEP, 12, SEP, 13]]
    assert sequences["document"].tolist() == [0, 1]


@given(
    lengths=st.lists(st.lists(st.integers(1, 20), min_size=1, max_size=6), min_size=1, max_size=6),
    max_seq_length=st.integers(8, 30),
    short=st.sampled_from([0.0, 0.5, 1.0]),
    shifted=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_token_is_used_once_in_whole_sentences(lengths, max_seq_length, short, shifted, seed):
    documents = documents_of(lengths)
    sequences = cut(
        documents, max_seq_length=max_seq_length, short=short, shifted=shifted, seed=seed
    )
    made = texts(documents, sequences)
    assert [token for text in made for token in text if token != SEP] == documents.tokens.tolist()
    assert all(0 < len(text) <= max_seq_length - 2 for text in made)
    assert all(text[0] != SEP != text[-1] for text in made)
    assert (sequences["second_length"] == 0).all() and not sequences["label"].any()
    assert len(np.unique(sequences["key"])) == len(sequences)
    starts = {int(start) + 10 for start in documents.sentence_offsets}
    whole = np.diff(documents.sentence_offsets).max() <= max_seq_length - 2
    if whole:
        assert all(text[0] in starts for text in made)
    if whole and short == 0.0 and not shifted:
        for text, after in itertools.pairwise(made):
            sentence = next(n for n in sorted(starts) if n > after[0]) - after[0]
            ended = any(after[0] == 10 + sum(map(sum, lengths[:n])) for n in range(len(lengths)))
            assert len(text) + ended + sentence > max_seq_length - 2
