"""Long contexts in windows, `[CLS] question [SEP] part of the context [SEP]`, and answers in them;
follows `convert_examples_to_features` of google-research/bert `run_squad.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import pair_rows
from bert_tf.data.text.host_wordpiece import TokenizedTexts

NO_ANSWER_POSITION = 0  # of [CLS]


class Windows(NamedTuple):
    question: np.ndarray  # int64 [windows], which question (or other sequence), ascending
    start: np.ndarray  # int64 [windows], first token of the context in the window
    length: np.ndarray  # int64 [windows], tokens of the context in the window


def cut_windows(lengths: np.ndarray, capacities: np.ndarray | int, *, stride: int) -> Windows:
    """Cut contexts into overlapping windows that cover every token.

    With room for 5 tokens and a stride of 3, a context of 9 tokens gives the windows 0-4, 3-7 and
    6-8. A stride greater than the room is taken as the room. An empty context has one empty window.
    Lengths and capacities are tokens, int [contexts].
    """
    lengths = np.asarray(lengths, np.int64)
    capacities = np.broadcast_to(capacities, lengths.shape)
    step = np.minimum(stride, capacities)
    beyond_first = np.maximum(lengths - capacities, 0)
    counts = 1 + -(-beyond_first // step)
    owner = np.repeat(np.arange(len(counts)), counts)
    start = flat_ranges(np.zeros(len(counts)), counts) * step[owner]
    return Windows(owner, start, np.minimum(capacities[owner], lengths[owner] - start))


def window_rows(
    windows: Windows,
    questions: TokenizedTexts,
    contexts: TokenizedTexts,
    context_index: np.ndarray,
    *,
    cls_id: int,
    sep_id: int,
) -> EncodedRows:
    """Build the row of every window; questions are already cut, `context_index` int [questions]."""
    question_begins = questions.offsets[windows.question]
    context_begins = contexts.offsets[context_index[windows.question]] + windows.start
    return pair_rows(
        (questions.ids, question_begins, questions.lengths[windows.question]),
        (contexts.ids, context_begins, windows.length),
        cls_id=cls_id,
        sep_id=sep_id,
    )


def answer_tokens(
    contexts: TokenizedTexts, context_index: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the first and last token of the context that each answer touches, int64 [answers].

    `starts` and `ends` are the first character of the answer and the one after it. Tokens are -1
    where the answer touches none (it is blank, or its end is not after its start).
    """
    # One ascending axis for all contexts: each context's characters begin after the last one's.
    tokens_of = contexts.lengths
    widths = np.zeros(len(tokens_of), np.int64)
    filled = tokens_of > 0
    widths[filled] = contexts.last_characters[contexts.offsets[1:][filled] - 1]
    if len(ends):
        np.maximum.at(widths, context_index, np.asarray(ends, np.int64))
    bases = offsets_of(widths + 1)[:-1]
    base_of_token = np.repeat(bases, tokens_of)
    first_places, last_places = (
        base_of_token + places for places in (contexts.first_characters, contexts.last_characters)
    )
    base = bases[context_index]
    first = np.searchsorted(last_places, base + starts, side="right")
    last = np.searchsorted(first_places, base + ends, side="left") - 1
    begins = contexts.offsets[context_index]
    first, last = np.maximum(first, begins) - begins, last - begins
    touched = (first <= last) & (first < tokens_of[context_index]) & (ends > starts)
    return np.where(touched, first, -1), np.where(touched, last, -1)


def window_targets(
    windows: Windows,
    question_lengths: np.ndarray,
    first_tokens: np.ndarray,
    last_tokens: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the answer's start and end in the row of each window, int32 [windows].

    Tokens are -1 for no answer. Both positions are [CLS] where the window does not hold the whole
    answer.
    """
    first = first_tokens[windows.question] - windows.start
    last = last_tokens[windows.question] - windows.start
    inside = (first_tokens[windows.question] >= 0) & (first >= 0) & (last < windows.length)
    shift = question_lengths[windows.question] + 2
    start, end = (
        np.where(inside, place + shift, NO_ANSWER_POSITION).astype(np.int32)
        for place in (first, last)
    )
    return start, end
