"""Contexts with each of their choices as model input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.data.rows.encoded_rows import GroupedRows
from bert_tf.data.rows.text_rows import encode_texts
from bert_tf.data.text.wordpiece import WordPieceTokenizer


def encode_choices(
    tokenizer: WordPieceTokenizer,
    contexts: Sequence[str],
    questions: Sequence[str] | None,
    choices: Sequence[Sequence[str]],
    *,
    max_seq_length: int,
) -> GroupedRows:
    """A sequence for each choice: the context, then the question with the choice.

    As HuggingFace's run_swag.py: the question and a blank precede the choice in one text, and pairs
    that are too long lose tokens of the longer text first.

    Args:
        tokenizer: the model's.
        contexts, questions: of each row; None for no questions.
        choices: of each row, at least one.
        max_seq_length: tokens per sequence.
    """
    counts = np.array([len(texts) for texts in choices], np.int64)
    first = [context for context, count in zip(contexts, counts, strict=True) for _ in range(count)]
    second = [text for texts in choices for text in texts]
    if questions is not None:
        asked = [each for each, count in zip(questions, counts, strict=True) for _ in range(count)]
        second = [f"{question} {text}" for question, text in zip(asked, second, strict=True)]
    rows = encode_texts(tokenizer, first, second, max_seq_length=max_seq_length)
    assert rows.lost_tokens is not None
    group_offsets = offsets_of(counts)
    return GroupedRows(
        ids=rows.ids,
        offsets=rows.offsets,
        second_starts=rows.second_starts,
        lost_tokens=np.add.reduceat(rows.lost_tokens, group_offsets[:-1]),
        group_offsets=group_offsets,
    )
