"""Which columns of a table are likely the text, or the pair of texts, that a label is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bert_tf.data.tables.sketches import ColumnSketch, TableSketch

LABEL_NAMES = (
    *("label", "labels", "class", "category", "target", "sentiment", "intent", "topic"),
    *("gold_label", "y"),
)
_TEXT_NAMES = ("text", "sentence")
_PAIRS = (
    ("text", "text_pair"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence_a", "sentence_b"),
    ("#1 string", "#2 string"),
    ("query", "passage"),
)


def likely_labeled_texts(
    table: TableSketch,
    what: str,
    *,
    names: Sequence[str],
    fits: Callable[[ColumnSketch], bool],
    rank: Callable[[ColumnSketch], float],
) -> dict[str, Any]:
    """The columns of a label and of the text, or the pair of texts, that it is of.

    Args:
        table: its columns.
        what, names, fits, rank: of the label, as of `TableSketch.column`.

    Raises:
        UsageError: there is no such column, or none with texts.
    """
    label = table.column("label_column", what, names=names, fits=fits, rank=rank)
    return {**likely_texts(table, taken=(label,)), "label_column": label}


def likely_texts(table: TableSketch, *, taken: tuple[str | None, ...] = ()) -> dict[str, Any]:
    """The columns of the text and, where their names say that there is one, of the second text.

    Args:
        table: its columns.
        taken: columns that are something else.

    Raises:
        UsageError: no column holds texts.
    """
    if table.given.get("text_column") is None and table.given.get("text_pair_column") is None:
        by_name = {each.name.lower(): each for each in table.columns if each.name not in taken}
        for first, second in _PAIRS:
            pair = by_name.get(first), by_name.get(second)
            if all(each is not None and each.kind == "text" for each in pair):
                return {"text_column": pair[0].name, "text_pair_column": pair[1].name}  # type: ignore[union-attr]
    text = table.column(
        "text_column",
        "the text",
        names=_TEXT_NAMES,
        fits=lambda each: each.is_text,
        rank=by_length,
        taken=taken,
    )
    pair_column = table.given.get("text_pair_column")
    return {"text_column": text} | ({"text_pair_column": pair_column} if pair_column else {})


def by_length(column: ColumnSketch) -> float:
    """The rank of columns of which the longest is meant."""
    return -column.characters
