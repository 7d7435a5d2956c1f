"""Questions and contexts as text to model rows: a row per window of a context."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.base.errors import UsageError
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.windows import (
    Windows,
    answer_tokens,
    context_windows,
    window_rows,
    window_targets,
)
from bert_tf.data.tables.rejects import Reject, nothing_usable
from bert_tf.data.text.host_wordpiece import CharacterTokenizer, TokenizedTexts
from bert_tf.serving.signatures import AnswerLengths

if TYPE_CHECKING:
    from bert_tf.tasks.question_answering.rows import Questions  # loads Numba

_LEAST_ROOM = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionRows:
    """Questions over contexts, ready for a model.

    Attributes:
        rows, windows: one per window.
        question_lengths: int64 [questions], tokens of each question.
        texts, contexts: each context once, and its tokens with their characters.
        context_index: int64 [questions], the context of each question.
    """

    rows: EncodedRows
    windows: Windows
    question_lengths: np.ndarray
    texts: Sequence[str]
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
    lengths: AnswerLengths,
) -> QuestionRows:
    """Tokenizes questions and contexts, each once, and cuts the contexts into windows."""
    whole = tokenizer.tokenize_with_characters(questions)
    asked = _first_tokens(whole, lengths.max_query_length)
    read = tokenizer.tokenize_with_characters(contexts)
    context_index = np.asarray(context_index, np.int64)
    windows = context_windows(
        read.lengths[context_index],
        asked.lengths,
        max_seq_length=lengths.max_seq_length,
        doc_stride=lengths.doc_stride,
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
        texts=contexts,
        contexts=read,
        context_index=context_index,
    )


def check_question_lengths(max_seq_length: int, max_query_length: int) -> None:
    """Rejects rows that leave less than eight tokens for the context beside a long question."""
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


def question_targets(
    source: Questions, encoded: QuestionRows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finds the tokens of the first answer of each question.

    Returns their start and end in each row, int32 [windows], [CLS] if a window does not hold them;
    and bool [questions], whether the tokens, or their absence, are known; never in files without
    positions.
    """
    firsts, lasts = answer_tokens(
        encoded.contexts, encoded.context_index, *_answer_characters(source)
    )
    has_answer = np.array([bool(listed) for listed in source.answers])
    is_located = ~has_answer | (firsts >= 0)
    if has_answer.any() and not is_located[has_answer].any():
        is_located[:] = False
    starts, ends = window_targets(encoded.windows, encoded.question_lengths, firsts, lasts)
    return starts, ends, is_located


def located_questions(source: Questions, is_located: np.ndarray) -> Questions:
    has_token = is_located | np.array([not listed for listed in source.answers])
    blank = [
        Reject(
            source.source,
            source.lines[index],
            "answer holds nothing the tokenizer keeps",
            f"question {source.ids[index]!r}: {source.answers[index][0].text!r}",
        )
        for index in np.flatnonzero(~has_token)
    ]
    kept = np.flatnonzero(has_token)
    if not len(kept):
        raise nothing_usable(source.source, [*source.rejects, *blank], noun="question")
    return source.selected(kept, [*source.rejects, *blank])


def _answer_characters(source: Questions) -> tuple[np.ndarray, np.ndarray]:
    """Position of the first answer of each question; 0 and 0 if there is none, or elsewhere."""
    starts = np.zeros(len(source), np.int64)
    ends = np.zeros(len(source), np.int64)
    for index, (listed, context) in enumerate(
        zip(source.answers, source.context_index, strict=True)
    ):
        if listed:
            text, start = listed[0]
            if start >= 0 and source.contexts[context].startswith(text, start):
                starts[index], ends[index] = start, start + len(text)
    return starts, ends
