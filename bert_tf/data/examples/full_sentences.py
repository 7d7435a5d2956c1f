"""Sequences of whole sentences, packed to the length, also beyond the end of a document."""

from __future__ import annotations

import numba
import numpy as np

from bert_tf.data.examples.flat_documents import FlatDocuments
from bert_tf.data.examples.random_numbers import combine, next_below, next_unit
from bert_tf.data.examples.segments import PAIR


def separate_documents(documents: FlatDocuments, sep_id: int) -> np.ndarray:
    """The tokens of all documents with a [SEP] after each: int32 [tokens + documents]."""
    ends = documents.sentence_offsets[documents.document_offsets[1:]]
    return np.insert(documents.tokens, ends, np.int32(sep_id))


def full_sentences(
    documents: FlatDocuments,
    keys: np.ndarray,
    *,
    first_of_split: int,
    max_seq_length: int,
    short_seq_prob: float,
    shifted: bool,
) -> np.ndarray:
    """Cuts documents, one after the other, into sequences of whole sentences.

    A sequence takes sentences while they fit, and one [SEP] where a document ends inside it. A
    sentence that is longer than a row is cut into parts that fill rows.

    Sentences of 3, 2 | 2, 4 tokens in two documents, rows with capacity for 5:

    | sequence             | tokens | why                                             |
    |----------------------|--------|-------------------------------------------------|
    | sentences 0, 1       | 5      | full                                            |
    | sentence 2           | 2      | with sentence 3 there would be 6                |
    | sentence 3           | 4      | the end                                         |

    Args:
        documents: at least one sentence per document and one token per sentence.
        keys: uint64 [documents], one per document and pass; all choices follow from them.
        first_of_split: no sequence goes beyond the beginning of this document.
        max_seq_length: tokens in a row, with [CLS] and the last [SEP].
        short_seq_prob: probability that a sequence is shorter, of a random number of tokens.
        shifted: whether the first sequence of both splits has a random length, so that other
            sentences meet than in the pass that is not shifted.

    Returns:
        An array of `PAIR` [sequences], whose first segments are ranges of `separate_documents` and
        whose second ones are empty; `document` is where the sequence begins.

    Reference: FULL-SENTENCES of Liu et al. 2019 (RoBERTa), section 4.2.
    """
    capacity = max_seq_length - 2
    most = 2 * documents.num_sentences + len(documents.tokens) // capacity + 2
    return _full_sentences(
        documents.sentence_offsets,
        documents.document_offsets,
        keys,
        first_of_split,
        capacity,
        short_seq_prob,
        shifted,
        np.zeros(most, PAIR),
    ).copy()


@numba.njit(cache=True, nogil=True)
def _full_sentences(
    sentence_offsets,
    document_offsets,
    keys,
    first_of_split,
    capacity,
    short_seq_prob,
    shifted,
    sequences,
):
    state = np.empty(1, np.uint64)
    made = 0
    length = np.int64(0)  # of the sequence that is being filled
    target = np.int64(capacity)
    for document in range(len(document_offsets) - 1):
        begins_split = document == 0 or document == first_of_split
        if begins_split and length > 0:
            made += 1
            length = np.int64(0)
        for sentence in range(document_offsets[document], document_offsets[document + 1]):
            start = sentence_offsets[sentence] + document
            end = sentence_offsets[sentence + 1] + document
            while start < end:
                if length > 0 and end - sequences[made].first_start > target:
                    made += 1
                    length = np.int64(0)
                if length == 0:
                    sequence = sequences[made]
                    sequence.document = document
                    sequence.first_start = start
                    place = start - sentence_offsets[document_offsets[document]]
                    sequence.key = combine(keys[document], np.uint64(place))
                    state[0] = sequence.key
                    target = np.int64(capacity)
                    is_short = next_unit(state) < short_seq_prob
                    if is_short or (shifted and begins_split):
                        target = np.int64(1 + next_below(state, capacity))
                    begins_split = False
                length = min(end - sequences[made].first_start, capacity)
                sequences[made].first_length = length
                start = sequences[made].first_start + length
    if length > 0:
        made += 1
    return sequences[:made]
