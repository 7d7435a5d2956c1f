"""Rows of several texts: checked, numbered, and as model input."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.data.rows.encoded_rows import GroupedRows
from bert_tf.data.rows.text_rows import encode_texts
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.tables import read_table_blocks
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.similarity.options import COSENT

_JUDGMENTS = (
    *(
        "score",
        "similarity",
        "label",
        "similarity_score",
        "labels",
        "gold_label",
        "is_duplicate",
        "duplicate",
        "match",
        "is_match",
    ),
    *("relevance", "quality", "paraphrase", "is_paraphrase", "target", "class", "y"),
)
_BITS = frozenset(("0", "1", "0.0", "1.0", "true", "false"))
_FIRST_ROWS = 4096


def encode_rows(
    tokenizer: WordPieceTokenizer, columns: Sequence[Sequence[str]], *, max_seq_length: int
) -> GroupedRows:
    texts = [text for row in zip(*columns, strict=True) for text in row]
    encoded = encode_texts(tokenizer, texts, None, max_seq_length=max_seq_length)
    return GroupedRows.of(encoded, np.full(len(texts) // len(columns), len(columns), np.int64))


def text_ids(columns: Sequence[Sequence[str]]) -> np.ndarray:
    """A number for each text, the same for equal ones: int32 [rows, columns]."""
    numbers: dict[str, int] = {}
    found = [[numbers.setdefault(text, len(numbers)) for text in column] for column in columns]
    return np.array(found, np.int32).T.copy()


def check_all_match(
    path: str, loss: str, used: Sequence[str], dialect: TableDialect, console: Console
) -> None:
    """Raises UsageError if pairs are labeled 0 and 1, and the loss would take all as matches.

    Warns of other unused columns that look like scores or labels.
    """
    rows = read_table_blocks(path, dialect=dialect, block_rows=_FIRST_ROWS, max_rows=_FIRST_ROWS)
    for block in itertools.islice(rows, 1):
        for name in block.columns:
            if name.lower() not in _JUDGMENTS or name in used:
                continue
            values = {value.lower() for value in block.texts(name)} - {""}
            unused = f"{path}: column {name!r} is not used: loss {loss} takes every row as a match"
            if len(values) > 1 and values <= _BITS:
                raise UsageError(
                    f"{unused}, those with 0 too; give --loss {COSENT} --label-column {name}, "
                    "which learns from such numbers, or take out the column and the rows that do "
                    "not match"
                )
            if len(values) > 1:
                console.warn(f"{unused}; --loss {COSENT} learns from a column of numbers")
