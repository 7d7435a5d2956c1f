"""Segments: the tokens that form the two halves of an example, or its one sequence."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.base.kernels import combine, next_below, next_bits, next_unit
from bert_tf.data.examples.flat_documents import FlatDocuments
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR, SPECIALS_OF_TEXT

# The segments of an example:
# - key: all later random choices for it, such as its masks, follow from this number.
# - first_start, first_length: range of the first segment in the tokens.
# - second_start, second_length: range of the second segment; length 0 if there is only one.
# - document: number of the document of the first segment.
# - label: whether the second segment is random, or the segments are swapped.
# - is_truncated: whether tokens were removed to make the segments fit.
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
    """Documents that random second segments may come from.

    Those from `low` up to `high`, except those from `own_low` up to `own_high`, which are the
    document itself and its copies.

    Attributes:
        low, high, own_low, own_high: int64 [documents]; `high` and `own_high` are exclusive.
    """

    low: np.ndarray
    high: np.ndarray
    own_low: np.ndarray
    own_high: np.ndarray

    def count(self) -> np.ndarray:
        """Return the number of documents that each document may choose from, int64 [documents]."""
        own = np.minimum(self.high, self.own_high) - np.maximum(self.low, self.own_low)
        return self.high - self.low - np.maximum(own, 0)


def no_other_document(documents: int) -> RandomNextChoices:
    """Return choices that let no document take random segments from another one."""
    nowhere = np.zeros(documents, np.int64)
    return RandomNextChoices(low=nowhere, high=nowhere, own_low=nowhere, own_high=nowhere)


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
    """Cut documents into pairs of segments, in one pass over all of them.

    Sentences are collected in a chunk until it has `max_seq_length - 3` tokens (fewer for a
    document that falls under `short_seq_prob`). The first segment is a random number of its
    sentences. The second one is the rest of the chunk. With `random_next_prob`, or if there is no
    rest, it is a random part of another document instead, and the rest starts the next chunk. A
    pair that is too long loses single tokens of its longer segment, each from the front or the
    back. Without another document, a last sentence in its own chunk is paired with the sentence
    before it.

    Args:
        documents: at least one sentence per document and one token per sentence.
        keys: uint64 [documents], one per document and pass; all choices follow from them.
        choices: documents that random second segments may come from.
        max_seq_length: tokens of a row, including [CLS] and two [SEP].
        short_seq_prob: probability that a document has shorter chunks, of 2 or more tokens.
        random_next_prob: probability of a random second segment, if there is another document.
        swap_prob: probability that the segments of a pair are swapped, which is then the label:
            sentence-order prediction, with `no_other_document` as choices.

    Returns:
        An array of `PAIR` [pairs], whose ranges refer to `documents.tokens`, and the number of
        chunks left out, because they are one sentence, not the last of several, and there is no
        other document.

    References: create_instances_from_document in google-research/bert create_pretraining_data.py;
    for sentence order Lan et al. 2020 (ALBERT), section 3.1, and google-research/albert.
    """
    pairs, left_out = _segment_pairs(
        documents.sentence_offsets,
        documents.document_offsets,
        keys,
        (choices.low, choices.own_low, choices.own_high, choices.count()),
        max_seq_length - SPECIALS_OF_PAIR,
        (short_seq_prob, random_next_prob, swap_prob),
        np.zeros(documents.num_sentences, PAIR),
    )
    return pairs.copy(), left_out


@numba.njit(cache=True, nogil=True)
def mark_segments(pairs, is_reached):
    """Set `is_reached`, bool [tokens], to True for tokens in a segment of the pairs."""
    for row in range(len(pairs)):
        pair = pairs[row]
        is_reached[pair.first_start : pair.first_start + pair.first_length] = True
        is_reached[pair.second_start : pair.second_start + pair.second_length] = True


@numba.njit(cache=True, nogil=True)
def _segment_pairs(
    sentence_offsets, document_offsets, keys, choices, capacity, probabilities, pairs
):
    """Cut documents into pairs; see `segment_pairs`.

    `first` and `last` are the first and last sentence of the chunk; sentences from `border` on are
    the rest. There are at most as many pairs as sentences, since each chunk uses up at least one.

    Args:
        sentence_offsets, document_offsets: those of `FlatDocuments`.
        keys: uint64 [documents], seeds of the random numbers.
        choices: low, own_low and own_high of `RandomNextChoices`, and its counts.
        capacity: tokens of both segments of a full row, at most.
        probabilities: of shorter chunks, of a random second segment, and of swapped segments.
        pairs: PAIR [sentences], to fill.

    Returns:
        The pairs that were made, and the number of chunks left out.
    """
    short_seq_prob, random_next_prob, swap_prob = probabilities
    _, _, _, others = choices
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
                # Otherwise the last sentence would be left out in every pass.
                first -= 1
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
                last = border - 1  # the rest of the chunk goes back
            else:
                start = border
                stop = last + 1
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
    """Return a range of sentences of another document, from a random one to `needed` tokens."""
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
    """Swap the segments of a pair, and label it."""
    start = pair.first_start
    length = pair.first_length
    pair.first_start = pair.second_start
    pair.first_length = pair.second_length
    pair.second_start = start
    pair.second_length = length
    pair.label = True


@numba.njit(cache=True, nogil=True)
def _truncate(pair, capacity, state):
    """Remove tokens of the longer segment, the second if both are equal, until both fit."""
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
    """Return the tokens of all documents, with a [SEP] after each: int32 [tokens + documents]."""
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

    A sequence takes sentences while they fit, and one [SEP] where a document ends inside it. A
    sentence longer than a row is cut into parts that fill rows.

    Sentences of 3, 2 | 2, 4 tokens in two documents, rows with room for 5:

    | sequence       | tokens | reason for its end           |
    |----------------|--------|------------------------------|
    | sentences 0, 1 | 5      | full                         |
    | sentence 2     | 2      | with sentence 3 there were 6 |
    | sentence 3     | 4      | the end                      |

    Args:
        documents: at least one sentence per document and one token per sentence.
        keys: uint64 [documents], one per document and pass; all choices follow from them.
        first_of_split: number of a document; no sequence goes beyond its beginning.
        max_seq_length: tokens of a row, including [CLS] and the last [SEP].
        short_seq_prob: probability that a sequence is shorter, with a random number of tokens.
        shifted: whether the first sequence of both splits has a random length, so that other
            sentences meet than without a shift.

    Returns:
        An array of `PAIR` [sequences]. First segments are ranges of `separate_documents`, second
        segments are empty; `document` is the one in which the sequence begins.

    Reference: FULL-SENTENCES of Liu et al. 2019 (RoBERTa), section 4.2.
    """
    capacity = max_seq_length - SPECIALS_OF_TEXT
    # At most: each sentence may end a sequence, and be cut into parts that fill rows and a rest.
    most = 2 * documents.num_sentences + len(documents.tokens) // capacity + 2
    sequences = _full_sentences(
        documents.sentence_offsets,
        documents.document_offsets,
        keys,
        first_of_split,
        (capacity, short_seq_prob, shifted),
        np.zeros(most, PAIR),
    )
    return sequences.copy()


@numba.njit(cache=True, nogil=True)
def _full_sentences(sentence_offsets, document_offsets, keys, first_of_split, rules, sequences):
    """Fill `sequences` and return those made; see `full_sentences`."""
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
            # The place in `separate_documents`, where each document before has one more token.
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
