"""Which loss the columns of a table are for, and which of them are its texts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.sketches import ColumnSketch, TableSketch
from bert_tf.data.tables.tables import read_table_blocks
from bert_tf.tasks.base.table_options import by_length
from bert_tf.tasks.similarity.options import COSENT, RANKING, TRIPLET

_FIRST = (
    *("anchor", "query", "question", "text", "sentence1", "premise", "question1", "text_a"),
    *("text1", "sentence_a", "#1 string"),
)
_SECOND = (
    *("positive", "pos", "passage", "answer", "document", "text_pair", "sentence2", "hypothesis"),
    *("question2", "text_b", "text2", "sentence_b", "#2 string"),
)
_NEGATIVE = ("negative", "neg", "hard_negative")
_SCORE = ("score", "similarity", "label", "similarity_score")

_JUDGMENTS = (
    *(*_SCORE, "labels", "gold_label", "is_duplicate", "duplicate", "match", "is_match"),
    *("relevance", "quality", "paraphrase", "is_paraphrase", "target", "class", "y"),
)
_BITS = frozenset(("0", "1", "0.0", "1.0", "true", "false"))
_FIRST_ROWS = 4096


def check_all_match(
    path: str, loss: str, used: Sequence[str], dialect: TableDialect, console: Console
) -> None:
    """Refuses a table whose pairs are labeled 0 and 1, of which a loss would take all as matches.

    Args:
        path: the table.
        loss: that takes every row as a match.
        used: columns that are read.
        dialect: how the table is written.
        console: gets a line on other columns that look like what says which rows match.

    Raises:
        UsageError: there is such a column.
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


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """See `TaskDeclaration.columns`.

    Texts with a number are scored pairs, with a text called negative triplets; two texts alone are
    matching pairs.
    """
    loss = table.given.get("loss")
    first = _text(table, "text_column", "the first text", _FIRST, ())
    second = _text(table, "text_pair_column", "the second text", _SECOND, (first,))
    score = None
    if loss in (None, COSENT):
        score = table.find(
            "label_column",
            names=_SCORE,
            fits=lambda each: each.is_quantity,
            rank=None,
            taken=(first, second),
        )
    if loss == COSENT and score is None:
        raise table.missing("label_column", "the score of a pair")
    settings: dict[str, Any] = {"text_column": first, "text_pair_column": second}
    if score is not None:
        return {"loss": COSENT, **settings, "label_column": score}
    negative = table.find(
        "negative_column", names=_NEGATIVE, fits=_is_any_text, rank=None, taken=(first, second)
    )
    if negative is not None:
        settings["negative_column"] = [negative]
    if loss == TRIPLET and negative is None:
        raise table.missing("negative_column", "a text that does not match")
    return {"loss": loss or RANKING, **settings}


def _text(
    table: TableSketch, key: str, what: str, names: tuple[str, ...], taken: tuple[str, ...]
) -> str:
    return table.column(key, what, names=names, fits=_is_any_text, rank=by_length, taken=taken)


def _is_any_text(column: ColumnSketch) -> bool:
    return column.kind == "text"
