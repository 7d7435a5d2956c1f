"""Values of tables: as text, and whether they are what a column must hold."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Literal

from bert_tf.data.tables.list_cells import list_in_text
from bert_tf.data.tables.reasons import (
    column_is_empty,
    column_is_missing,
    column_is_not_a_value,
    column_is_not_text,
)
from bert_tf.data.tables.text_files import has_surrogates

GAPS = frozenset(("nan", "none", "null", "<na>"))
"""Blank cells as pandas writes them as text, in lower case."""
CellKind = Literal["text", "value", "list"]
"""What a needed column holds: a text; a text, a number or a truth value; or any value, which what
reads the list takes apart."""


def cell_text(value: Any) -> str:
    """A cell as text: values as JSON writes them, but texts bare and nothing for null."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def texts_of(row: dict[str, Any], columns: Sequence[str]) -> list[str] | None:
    """The texts of a row that are in several columns, or in one as a list.

    Args:
        row: values by column.
        columns: one holds a list of texts and numbers, or the text of such a list.

    Returns:
        None if the one column holds something else.
    """
    if len(columns) > 1:
        return [cell_text(row.get(name)) for name in columns]
    value = row.get(columns[0])
    if isinstance(value, str):
        value = list_in_text(value)
    if not isinstance(value, list) or any(isinstance(item, list | dict) for item in value):
        return None
    texts = [cell_text(item) for item in value]
    return None if has_surrogates("".join(texts)) else texts


def words_of(value: Any) -> list[str] | None:
    """The words of a list, of its text, or of a text with blanks between them.

    Returns:
        None if it is something else.
    """
    if isinstance(value, str):
        listed = list_in_text(value) if value.lstrip().startswith(("[", "array(")) else None
        if listed is None and not value.lstrip().startswith("["):
            return value.split()
        value = listed
    if not isinstance(value, list):
        return None
    if any(isinstance(item, list | dict | bool | float) or item is None for item in value):
        return None
    return [cell_text(item) for item in value]


def text_fault_of_words(text: str) -> tuple[str, str] | None:
    """Why words, joined by blanks, cannot be used: the reason and the detail; None if they can."""
    if not text.strip():
        return "has no words", ""
    if has_surrogates(text):
        return "text is not Unicode", ""
    return None


def cell_fault(
    row: dict[str, Any], name: str, *, kind: CellKind, allow_empty: bool
) -> tuple[str, str] | None:
    """Why a row cannot be used for a needed column: the reason and the detail; None if it can.

    Args:
        row: values by column.
        name: of the needed column.
        kind: what the column holds.
        allow_empty: whether empty cells and null are none; of lists they always are.
    """
    value = row.get(name)
    allow_empty = allow_empty or kind == "list"
    if isinstance(value, str):
        if allow_empty or value.strip():
            return None
        return column_is_empty(name), ""
    if value is None:
        if name not in row:
            return column_is_missing(name), ""
        return None if allow_empty else (column_is_empty(name), "")
    if kind == "text":
        return column_is_not_text(name), shortened(value)
    if kind == "list":
        return None
    if isinstance(value, list | dict) or (isinstance(value, float) and not math.isfinite(value)):
        return column_is_not_a_value(name), shortened(value)
    return None


def shortened(value: Any) -> str:
    """A value as Python writes it, cut for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
