"""Which columns of a table are likely the context, the choices and the right one."""

from __future__ import annotations

import re
from typing import Any

from bert_tf.data.tables.sketches import ColumnSketch, TableSketch
from bert_tf.tasks.base.table_options import LABEL_NAMES, by_length

_CONTEXT = ("context", "passage", "article", "premise", "sent1", "question")
_QUESTION = ("question", "sent2")
_CHOICES = ("choices", "options", "endings", "answers")
_NUMBERED = re.compile(r"(choice|ending|option|answer|alternative)_?([a-e0-9])", re.IGNORECASE)


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """See `TaskDeclaration.columns`."""
    choices = _choices(table)
    label = table.column(
        "label_column",
        "the right choice",
        names=(*LABEL_NAMES, "answer", "correct"),
        fits=lambda each: each.kind in ("text", "number"),
        rank=lambda each: each.distinct,
        taken=choices,
    )
    taken = (*choices, label)
    context = table.column(
        "context_column", "the context", names=_CONTEXT, fits=_is_text, rank=by_length, taken=taken
    )
    question = table.find(
        "question_column", names=_QUESTION, fits=_is_text, rank=None, taken=(*taken, context)
    )
    settings = {"context_column": context, "choices_column": list(choices), "label_column": label}
    return settings | ({"question_column": question} if question else {})


def _choices(table: TableSketch) -> tuple[str, ...]:
    given = table.given.get("choices_column")
    if given:
        return tuple(given) if isinstance(given, list | tuple) else (str(given),)
    numbered = tuple(each.name for each in table.columns if _NUMBERED.fullmatch(each.name))
    if len(numbered) > 1:
        return numbered
    listed = table.column(
        "choices_column",
        "the list of choices",
        names=_CHOICES,
        fits=lambda each: each.kind == "list" or each.name.lower() in _CHOICES,
        rank=lambda each: each.distinct,
    )
    return (listed,)


def _is_text(column: ColumnSketch) -> bool:
    return column.kind == "text"
