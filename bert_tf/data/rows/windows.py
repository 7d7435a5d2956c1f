"""Long contexts in windows, `[CLS] question [SEP] part of the context [SEP]`, and answers in them.

Follows `convert_examples_to_features` of google-research/bert `run_squad.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import TokenRanges, pair_rows
from bert_tf.data.text.host_wordpiece import TokenizedTexts

NO_ANSWER_POSITION = 0  # the position of [CLS]
SPECIALS_BEFORE_CONTEXT = 2  # [CLS] and the [SEP] after the question


class Windows(NamedTuple):
    """Parts of contexts, each read together with its question.

    Attributes:
        question: int64 [windows], ascending, number of the question or other text whose context it
            is.
        start: int64 [windows], first token of the context in the window.
        length: int64 [windows], tokens of the context in the window.
    """

    question: np.ndarray
    start: np.ndarray
    length: np.ndarray


def cut_windows(lengths: np.ndarray, capacities: np.ndarray | int, *, stride: int) -> Windows:
    """Cut contexts into overlapping windows that cover every token.

    With room for 5 tokens and a stride of 3, a context of 9 tokens has the windows 0-4, 3-7 and
    6-8. An empty context has one empty window.

    Args:
        lengths: int [contexts], tokens of each context.
        capacities: int [contexts] or a number, tokens of a window of each context.
        stride: tokens from the start of a window to the start of the next; if it is more than a
            window holds, windows do not overlap.
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
    """Build the row of every window.

    Args:
        windows: parts of the contexts.
        questions: tokens of each question, already cut.
        contexts: tokens of each context.
        context_index: int [questions], the context of each question.
        cls_id, sep_id: ids of [CLS] and [SEP].
    """
    question_begins = questions.offsets[windows.question]
    context_begins = contexts.offsets[context_index[windows.question]] + windows.start
    return pair_rows(
        TokenRanges(questions.ids, question_begins, questions.lengths[windows.question]),
        TokenRanges(contexts.ids, context_begins, windows.length),
        cls_id=cls_id,
        sep_id=sep_id,
    )


def answer_tokens(
    contexts: TokenizedTexts, context_index: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the first and last token of its context that each answer touches.

    Args:
        contexts: tokens of each context.
        context_index: int [answers], the context of each answer.
        starts: int [answers], first character of the answer in its context.
        ends: int [answers], the character after the answer.

    Returns:
        First and last token, int64 [answers], counted within the context; -1 if the answer touches
        none (it is blank, or its end is not after its start).
    """
    # All contexts are laid on one axis of characters, each after the one before, so that two
    # searches find the tokens of all answers.
    tokens_of = contexts.lengths
    widths = np.zeros(len(tokens_of), np.int64)
    filled = tokens_of > 0
    widths[filled] = contexts.last_characters[contexts.offsets[1:][filled] - 1]
    if len(ends):
        np.maximum.at(widths, context_index, np.asarray(ends, np.int64))
    bases = offsets_of(widths + 1)[:-1]
    base_of_token = np.repeat(bases, tokens_of)
    first_places = base_of_token + contexts.first_characters
    last_places = base_of_token + contexts.last_characters
    base = bases[context_index]
    first = np.searchsorted(last_places, base + starts, side="right")
    last = np.searchsorted(first_places, base + ends, side="left") - 1
    begins = contexts.offsets[context_index]
    first = np.maximum(first, begins) - begins
    last = last - begins
    touched = (first <= last) & (first < tokens_of[context_index]) & (ends > starts)
    return np.where(touched, first, -1), np.where(touched, last, -1)


def window_targets(
    windows: Windows,
    question_lengths: np.ndarray,
    first_tokens: np.ndarray,
    last_tokens: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the start and end of the answer in the row of each window.

    Args:
        windows: parts of the contexts.
        question_lengths: int [questions], tokens of each question.
        first_tokens, last_tokens: int [questions], result of `answer_tokens`, -1 for no answer.

    Returns:
        Positions of the first and last token, int32 [windows]; both are that of [CLS] if the window
        does not contain the whole answer.
    """
    first = first_tokens[windows.question] - windows.start
    last = last_tokens[windows.question] - windows.start
    inside = (first_tokens[windows.question] >= 0) & (first >= 0) & (last < windows.length)
    shift = question_lengths[windows.question] + SPECIALS_BEFORE_CONTEXT
    start = np.where(inside, first + shift, NO_ANSWER_POSITION).astype(np.int32)
    end = np.where(inside, last + shift, NO_ANSWER_POSITION).astype(np.int32)
    return start, end
