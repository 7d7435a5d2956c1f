"""Flat documents against plain lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.data.examples.flat_documents import FlatDocuments, concatenate_documents

nested_lists = st.lists(
    st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4), min_size=1, max_size=6
)


def flat(documents: list[list[list[int]]]) -> FlatDocuments:
    sentences = [sentence for document in documents for sentence in document]
    return FlatDocuments(
        np.array([token for sentence in sentences for token in sentence], np.int32),
        offsets_of(np.array([len(sentence) for sentence in sentences], np.int64)),
        offsets_of(np.array([len(document) for document in documents])),
    )


def nested(documents: FlatDocuments) -> list[list[list[int]]]:
    tokens, sentences, borders = (
        documents.tokens,
        documents.sentence_offsets,
        documents.document_offsets,
    )
    return [
        [
            tokens[sentences[s] : sentences[s + 1]].tolist()
            for s in range(borders[d], borders[d + 1])
        ]
        for d in range(len(documents))
    ]


@given(documents=nested_lists, data=st.data())
def test_selecting_joining_and_dropping_equal_lists(documents, data):
    numbers = data.draw(st.lists(st.integers(0, len(documents) - 1), max_size=6))
    chosen = flat(documents).select(np.array(numbers, np.int64))
    assert nested(chosen) == [documents[number] for number in numbers]
    assert nested(concatenate_documents([flat(documents), chosen])) == [
        *documents,
        *(documents[number] for number in numbers),
    ]
    assert nested(flat(documents).without_empty_sentences()) == [
        [sentence for sentence in document if sentence] for document in documents
    ]
