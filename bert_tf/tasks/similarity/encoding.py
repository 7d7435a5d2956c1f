"""Rows of several texts as model input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bert_tf.data.rows.encoded_rows import GroupedRows
from bert_tf.data.rows.text_rows import encode_texts
from bert_tf.data.text.wordpiece import WordPieceTokenizer


def encode_rows(
    tokenizer: WordPieceTokenizer, columns: Sequence[Sequence[str]], *, max_seq_length: int
) -> GroupedRows:
    """A sequence for each text, those of a row one after the other.

    Args:
        tokenizer: the model's.
        columns: of texts, at least one of them, equally long.
        max_seq_length: tokens per sequence.
    """
    texts = [text for row in zip(*columns, strict=True) for text in row]
    encoded = encode_texts(tokenizer, texts, None, max_seq_length=max_seq_length)
    assert encoded.lost_tokens is not None
    return GroupedRows(
        ids=encoded.ids,
        offsets=encoded.offsets,
        second_starts=encoded.second_starts,
        lost_tokens=encoded.lost_tokens.reshape(-1, len(columns)).sum(axis=1),
        group_offsets=np.arange(0, len(texts) + 1, len(columns), dtype=np.int64),
    )


def text_ids(columns: Sequence[Sequence[str]]) -> np.ndarray:
    """A number for each text, the same for equal ones: int32 [rows, columns]."""
    numbers: dict[str, int] = {}
    found = [[numbers.setdefault(text, len(numbers)) for text in column] for column in columns]
    return np.array(found, np.int32).T.copy()
