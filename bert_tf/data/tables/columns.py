"""Whether a table has the columns that are needed: the same words for every format and reader."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.cells import shortened
from bert_tf.data.tables.formats.delimited import TableHeader

_MOST_WORDS = 2  # of a column's name
_NESTED = {"qas": ".", "paragraphs": "{data: .}"}  # what lines of SQuAD JSON are made one with


def check_columns(
    path: str | Path,
    header: TableHeader | None,
    columns: Sequence[str],
    needed: Iterable[str],
) -> None:
    """Refuses a table that lacks a column, saying what there is and what was likely meant.

    Args:
        path: the table.
        header: None of JSON lines and Parquet.
        columns: what the table has.
        needed: what it must have.

    Raises:
        UsageError: a column is missing.
    """
    for name in needed:
        if name not in columns:
            raise UsageError(
                f"{path}: no column {name!r}; {_likely_columns(name, columns, header)}"
            )


def export_hint(columns: Sequence[str]) -> str:
    """How to export what Label Studio nests in one column into columns; empty for other tables."""
    if {"data", "annotations"}.issubset(columns):
        return "of Label Studio's formats export JSON-MIN, with an object per line, or CSV, and "
    return ""


def _likely_columns(wanted: str, columns: Sequence[str], header: TableHeader | None) -> str:
    if header is not None and header.raw is None:
        return f"columns of a table without a header have numbers, here 1 to {len(columns)}"
    available = ", ".join(shortened(name) for name in columns) or "none"
    for nested, query in _NESTED.items():
        if nested in columns:
            return f"it has {available}; jq -s '{query}' makes SQuAD JSON of it, to be named .json"
    if hint := export_hint(columns):
        return f"it has {available}; {hint}name its columns"
    folded = {name.lower(): name for name in columns}
    near = difflib.get_close_matches(wanted.lower(), list(folded), n=1, cutoff=0.5)
    if near:
        return f"it has {available}; did you mean {folded[near[0]]!r}?"
    if header is None or all(map(_is_name, columns)):
        return f"it has {available}; name the column that is meant"
    return (
        f"it has {available}; if that is the first row, give --no-header and the columns by number"
    )


def _is_name(text: str) -> bool:
    """Whether a cell of the first row may name a column; a text or a number hardly does."""
    return len(text.split()) <= _MOST_WORDS and any(map(str.isalpha, text))
