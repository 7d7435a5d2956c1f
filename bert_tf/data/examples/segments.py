"""Next-sentence pairs: the tokens that form the two segments of an example."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np

from bert_tf.base.kernels import combine, next_below, next_bits, next_unit
from bert_tf.data.examples.flat_documents import FlatDocuments

PAIR = np.dtype(
    [
        ("key", np.uint64),
        ("first_start", np.int64),
        ("second_start", np.int64),
        ("document", np.int64),
        ("first_length", np.int32),
        ("second_length", np.int32),
        ("label", np.bool_),
        ("is_truncated", np.bool_),
    ],
    align=True,
)


@dataclasses.dataclass(frozen=True)
class RandomNextChoices:
    """Documents that random second segments may come from: from `low` up to `high` except those
    from `own_low` up to `own_high`, the document itself and its copies; all int64 [documents].
    """

    low: np.ndarray
    high: np.ndarray
    own_low: np.ndarray
    own_high: np.ndarray

    def count(self) -> np.ndarray:
        """Count documents that each may choose from, int64 [documents]."""
        own = np.minimum(self.high, self.own_high) - np.maximum(self.low, self.own_low)
        return self.high - self.low - np.maximum(own, 0)


def no_other_document(documents: int) -> RandomNextChoices:
    return RandomNextChoices(*[np.zeros(documents, np.int64)] * 4)


def segment_pairs(
    documents: FlatDocuments,
    keys: np.ndarray,
    choices: RandomNextChoices,
    *,
    max_seq_length: int,
    short_seq_prob: float,
    random_next_prob: float = 0.5,
    swap_prob: float = 0.0,
) -> tuple[np.ndarray, int]:
    """Cut documents into pairs of segments.

    Sentences gather in a chunk until it has `max_seq_length - 3` tokens (fewer for a document that
    falls under `short_seq_prob`); a random number of its sentences is the first segment. The rest
    is the second one, unless, with `random_next_prob` or always when there is no rest, sentences of
    another document take its place and the rest goes back. A pair that is too long loses tokens of
    its longer segment, each from the front or the back. Without another document, a last sentence
    in a chunk of its own pairs with the sentence before it.

    Returns an array of `PAIR` [pairs], and the number of chunks left out because they are one
    sentence, not the last of several, and there is no other document.

    Args:
        documents: at least one sentence per document and one token per sentence.
        keys: uint64 [documents], one per document and pass; all choices follow from them.
        max_seq_length: tokens in a row, with [CLS] and two [SEP].
        short_seq_prob: probability that a document's chunks are shorter, of 2 or more tokens.
        random_next_prob: probability of a random second segment where a choice exists.
        swap_prob: probability that the segments of a pair change places, which then is the
            label: sentence-order prediction, with `no_other_document` as choices.

    References: create_instances_from_document in google-research/bert create_pretraining_data.py;
    for sentence order Lan et al. 2020 (ALBERT), section 3.1, and google-research/albert.
    """
    pairs, left_out = _segment_pairs(
        documents.sentence_offsets,
        documents.document_offsets,
        keys,
        (choices.low, choices.own_low, choices.own_high, choices.count()),
        max_seq_length - 3,
        (short_seq_prob, random_next_prob, swap_prob),
        np.zeros(documents.num_sentences, PAIR),
    )
    return pairs.copy(), left_out


@numba.njit(cache=True, nogil=True)
def mark_segments(pairs, is_reached):
    """Set bool [tokens] to true where a token is in a segment of the pairs."""
    for row in range(len(pairs)):
        pair = pairs[row]
        is_reached[pair.first_start : pair.first_start + pair.first_length] = True
        is_reached[pair.second_start : pair.second_start + pair.second_length] = True


@numba.njit(cache=True, nogil=True)
def _segment_pairs(
    sentence_offsets, document_offsets, keys, choices, capacity, probabilities, pairs
):
    short_seq_prob, random_next_prob, swap_prob = probabilities
    others = choices[3]
    state = np.empty(1, np.uint64)
    made = 0
    left_out = 0
    for document in range(len(document_offsets) - 1):
        state[0] = keys[document]
        target = capacity
        if next_unit(state) < short_seq_prob:
            target = 2 + next_below(state, capacity - 1)
        end = document_offsets[document + 1]
        first = document_offsets[document]
        last = first
        made_before = made
        while last < end:
            length = sentence_offsets[last + 1] - sentence_offsets[first]
            if last < end - 1 and length < target:
                last += 1
                continue
            count = last - first + 1
            border = first + 1
            if count >= 2:
                border += next_below(state, count - 1)
            wants_random = count == 1 or next_unit(state) < random_next_prob
            is_random = wants_random and others[document] > 0
            if count == 1 and not is_random:
                if last < end - 1 or first == document_offsets[document]:
                    left_out += 1
                    last += 1
                    first = last
                    continue
                first -= 1  # the last sentence would be left out in every pass
                border = last
            pair = pairs[made]
            pair.document = document
            pair.key = combine(keys[document], np.uint64(made - made_before))
            pair.label = is_random
            pair.first_start = sentence_offsets[first]
            pair.first_length = sentence_offsets[border] - sentence_offsets[first]
            if is_random:
                needed = target - pair.first_length
                start, stop = _random_sentences(
                    sentence_offsets, document_offsets, choices, document, needed, state
                )
                last = border - 1
            else:
                start, stop = border, last + 1
            pair.second_start = sentence_offsets[start]
            pair.second_length = sentence_offsets[stop] - sentence_offsets[start]
            _truncate(pair, capacity, state)
            if swap_prob > 0 and next_unit(state) < swap_prob:
                _swap(pair)
            made += 1
            last += 1
            first = last
    return pairs[:made], left_out


@numba.njit(cache=True, nogil=True)
def _random_sentences(sentence_offsets, document_offsets, choices, document, needed, state):
    low, own_low, own_high, count = choices
    other = low[document] + next_below(state, count[document])
    if other >= own_low[document] >= low[document]:
        other += own_high[document] - own_low[document]
    end = document_offsets[other + 1]
    start = document_offsets[other] + next_below(state, end - document_offsets[other])
    stop = start + 1
    while stop < end and sentence_offsets[stop] - sentence_offsets[start] < needed:
        stop += 1
    return start, stop


@numba.njit(cache=True, nogil=True)
def _swap(pair):
    start, length = pair.first_start, pair.first_length
    pair.first_start, pair.first_length = pair.second_start, pair.second_length
    pair.second_start, pair.second_length = start, length
    pair.label = True


@numba.njit(cache=True, nogil=True)
def _truncate(pair, capacity, state):
    """Drop tokens of the longer segment, the second if equal, until both fit."""
    pair.is_truncated = pair.first_length + pair.second_length > capacity
    while pair.first_length + pair.second_length > capacity:
        from_front = next_bits(state) & np.uint64(1)
        if pair.first_length > pair.second_length:
            pair.first_length -= 1
            pair.first_start += from_front
        else:
            pair.second_length -= 1
            pair.second_start += from_front


def separate_documents(documents: FlatDocuments, sep_id: int) -> np.ndarray:
    """Join tokens of all documents with a [SEP] after each: int32 [tokens + documents]."""
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
    """Cut documents, one after the other, into sequences of whole sentences.

    A sequence takes sentences while they fit, and one [SEP] where a document ends inside it:
    sentences of 3, 2 | 2, 4 tokens in two documents become 5, 2, 4 in rows with capacity for 5. A
    sentence longer than a row is cut into parts that fill rows. Returns an array of `PAIR`
    [sequences]: first segments are ranges of `separate_documents`, second segments are empty.

    Args:
        documents, keys: as of `segment_pairs`.
        first_of_split: no sequence goes beyond the beginning of this document.
        max_seq_length: tokens in a row, with [CLS] and the last [SEP].
        short_seq_prob: probability that a sequence is shorter, of a random number of tokens.
        shifted: whether the first sequence of both splits has a random length, so that other
            sentences meet than in the pass that is not shifted.

    Reference: FULL-SENTENCES of Liu et al. 2019 (RoBERTa), section 4.2.
    """
    capacity = max_seq_length - 2
    most = 2 * documents.num_sentences + len(documents.tokens) // capacity + 2
    offsets = documents.sentence_offsets, documents.document_offsets
    rules = capacity, short_seq_prob, shifted
    return _full_sentences(*offsets, keys, first_of_split, rules, np.zeros(most, PAIR)).copy()


@numba.njit(cache=True, nogil=True)
def _full_sentences(sentence_offsets, document_offsets, keys, first_of_split, rules, sequences):
    capacity, short_seq_prob, shifted = rules
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
