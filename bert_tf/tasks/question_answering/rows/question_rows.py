"""Questions and contexts as text to model rows: a row per window of a context."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.base.errors import UsageError
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.windows import Windows, context_windows, window_rows
from bert_tf.data.text.host_wordpiece import CharacterTokenizer, TokenizedTexts

_LEAST_ROOM = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionRows:
    """Questions over contexts, ready for a model.

    Attributes:
        rows: one row per window.
        windows: which part of which question's context each row holds.
        question_lengths: int64 [questions], tokens of each question.
        contexts: the tokens of each context and the characters they cover.
        context_index: int64 [questions], the context of each question.
    """

    rows: EncodedRows
    windows: Windows
    question_lengths: np.ndarray
    contexts: TokenizedTexts
    context_index: np.ndarray

    @property
    def context_begins(self) -> np.ndarray:
        """Where in its row each window's part of the context begins, int64 [windows]."""
        return self.question_lengths[self.windows.question] + 2


def encode_questions(
    tokenizer: CharacterTokenizer,
    questions: Sequence[str],
    contexts: Sequence[str],
    context_index: np.ndarray,
    *,
    max_seq_length: int,
    doc_stride: int,
    max_query_length: int,
) -> QuestionRows:
    """Tokenizes questions and contexts and cuts the contexts into windows.

    Args:
        tokenizer: the model's.
        questions: the questions.
        contexts: the contexts, each once.
        context_index: int [questions], the context of each question.
        max_seq_length: tokens of a row.
        doc_stride: tokens between the starts of two windows.
        max_query_length: tokens kept of a question.
    """
    whole = tokenizer.tokenize_with_characters(questions)
    asked = _first_tokens(whole, max_query_length)
    read = tokenizer.tokenize_with_characters(contexts)
    context_index = np.asarray(context_index, np.int64)
    windows = context_windows(
        read.lengths[context_index],
        asked.lengths,
        max_seq_length=max_seq_length,
        doc_stride=doc_stride,
    )
    rows = window_rows(
        windows,
        asked,
        read,
        context_index,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
    )
    lost_tokens = np.zeros(len(windows), np.int64)
    first_windows = np.searchsorted(windows.question, np.arange(len(asked.lengths)))
    lost_tokens[first_windows] = whole.lengths - asked.lengths
    return QuestionRows(
        rows=dataclasses.replace(rows, lost_tokens=lost_tokens),
        windows=windows,
        question_lengths=asked.lengths,
        contexts=read,
        context_index=context_index,
    )


def check_question_lengths(max_seq_length: int, max_query_length: int) -> None:
    """Refuses a row that a long question would fill.

    Raises:
        UsageError: less than eight tokens would be left for the context.
    """
    least = max_query_length + 3 + _LEAST_ROOM
    if max_seq_length < least:
        raise UsageError(
            f"max_seq_length {max_seq_length} leaves no room for a context beside a question of "
            f"max_query_length {max_query_length}; use at least {least} or shorter questions"
        )


def _first_tokens(tokens: TokenizedTexts, most: int) -> TokenizedTexts:
    lengths = np.minimum(tokens.lengths, most)
    kept = flat_ranges(tokens.offsets[:-1], lengths)
    return TokenizedTexts(
        ids=tokens.ids[kept],
        offsets=offsets_of(lengths),
        first_characters=tokens.first_characters[kept],
        last_characters=tokens.last_characters[kept],
    )
