"""Which columns of a table are likely question, context and answer; SQuAD JSON names its own."""

from __future__ import annotations

from typing import Any

from bert_tf.data.tables.sketches import ColumnSketch, TableSketch
from bert_tf.tasks.base.table_options import by_length

_QUESTION = ("question", "query")
_CONTEXT = ("context", "passage", "paragraph", "document", "text")
_ANSWER = ("answer", "answers", "answer_text")
_START = ("answer_start", "answer_starts", "start")


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """See `TaskDeclaration.columns`."""
    context = table.column(
        "context_column",
        "the context",
        names=_CONTEXT,
        fits=lambda each: each.is_text,
        rank=by_length,
    )
    question = table.column(
        "question_column",
        "the question",
        names=_QUESTION,
        fits=lambda each: each.is_text,
        rank=by_length,
        taken=(context,),
    )
    answer = table.find(
        "answer_column", names=_ANSWER, fits=lambda each: True, rank=None, taken=(context, question)
    )
    if answer is None:
        raise table.missing("answer_column", "the answer")
    columns = {"question_column": question, "context_column": context, "answer_column": answer}
    if any(each.name == answer and _holds_structs(each) for each in table.columns):
        return columns
    start = table.find(
        "answer_start_column", names=_START, fits=_holds_values, rank=None, taken=(answer,)
    )
    if start is None:
        raise table.missing("answer_start_column", "the answer's first character")
    return {**columns, "answer_start_column": start}


def _holds_structs(column: ColumnSketch) -> bool:
    """Whether answers have their starts with them, as in HuggingFace's rows of SQuAD."""
    return column.kind == "object" or column.example.strip("'\"").startswith("{")


def _holds_values(column: ColumnSketch) -> bool:
    return column.kind != "object"
