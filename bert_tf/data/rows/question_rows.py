"""Questions and contexts as text to model rows, and the model's logits back to answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.base.errors import UsageError
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.windows import (
    Pieces,
    Windows,
    characters_at_bytes,
    context_windows,
    window_rows,
)
from bert_tf.data.text.wordpiece import WordPieceTokenizer

_BATCH_TEXTS = 1024
_LEAST_ROOM = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionRows:
    """Questions over contexts, ready for a model.

    Attributes:
        rows: one row a window.
        windows: which part of which question's context each row holds.
        question_lengths: int64 [questions], pieces of each question.
        contexts: the pieces of each context and the characters they cover.
        context_index: int64 [questions], the context of each question.
    """

    rows: EncodedRows
    windows: Windows
    question_lengths: np.ndarray
    contexts: Pieces
    context_index: np.ndarray

    @property
    def context_begins(self) -> np.ndarray:
        """Where in its row each window's part of the context begins, int64 [windows]."""
        return self.question_lengths[self.windows.question] + 2


def encode_questions(
    tokenizer: WordPieceTokenizer,
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
        max_seq_length: pieces of a row.
        doc_stride: pieces between the starts of two windows.
        max_query_length: pieces kept of a question.
    """
    asked = _first_pieces(tokenize_with_characters(tokenizer, questions), max_query_length)
    read = tokenize_with_characters(tokenizer, contexts)
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
    return QuestionRows(
        rows=rows,
        windows=windows,
        question_lengths=asked.lengths,
        contexts=read,
        context_index=context_index,
    )


def check_question_lengths(max_seq_length: int, max_query_length: int) -> None:
    """Refuses a row that a long question would fill.

    Raises:
        UsageError: less than eight pieces would be left for the context.
    """
    least = max_query_length + 3 + _LEAST_ROOM
    if max_seq_length < least:
        raise UsageError(
            f"max_seq_length {max_seq_length} leaves no room for a context beside a question of "
            f"max_query_length {max_query_length}; use at least {least} or shorter questions"
        )


def tokenize_with_characters(tokenizer: WordPieceTokenizer, texts: Sequence[str]) -> Pieces:
    """Pieces of texts with the characters (code points, as Python counts) that each covers."""
    ids, lengths, first, last = [], [], [], []
    for begin in range(0, len(texts), _BATCH_TEXTS):
        encoded = [text.encode() for text in texts[begin : begin + _BATCH_TEXTS]]
        pieces, starts, ends = tokenizer.tokenize_with_offsets(tf.constant(encoded, tf.string))
        counts = pieces.row_lengths().numpy()
        owners = np.repeat(np.arange(len(encoded)), counts)
        ids.append(pieces.flat_values.numpy())
        lengths.append(counts)
        first.append(characters_at_bytes(encoded, owners, starts.flat_values.numpy()))
        last.append(characters_at_bytes(encoded, owners, ends.flat_values.numpy()))
    return Pieces(
        ids=_joined(ids, np.int32),
        offsets=offsets_of(_joined(lengths, np.int64)),
        first_characters=_joined(first, np.int64),
        last_characters=_joined(last, np.int64),
    )


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _first_pieces(pieces: Pieces, most: int) -> Pieces:
    lengths = np.minimum(pieces.lengths, most)
    kept = flat_ranges(pieces.offsets[:-1], lengths)
    return Pieces(
        ids=pieces.ids[kept],
        offsets=offsets_of(lengths),
        first_characters=pieces.first_characters[kept],
        last_characters=pieces.last_characters[kept],
    )
