"""Read questions with their answers from SQuAD JSON (1.1, 2.0), and from tables.

Answers of a table are a text with its start, lists of both, or structs with `text` and
`answer_start`, as HuggingFace's rows of SQuAD have them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.base.console import Console
from bert_tf.base.errors import Fault
from bert_tf.data.tables.cells import cell_text, check_columns, list_in_text, value_in_text
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.squad_json import read_squad_entries
from bert_tf.data.tables.places import Places
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.tables import TableBlock, read_table_blocks

_WHOLE_NUMBER = re.compile(r"(\d{1,9})(\.0*)?", re.ASCII)
_LONGEST_CONTEXT = 10**9  # characters; larger starts are no places
_STRUCTS = "answers"  # the column of structs in HuggingFace's rows


class Answer(NamedTuple):
    """A text, and the character of the context at which it starts; -1 if that is not given."""

    text: str
    start: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionColumns:
    """Columns of a table; the columns of answers are None if they are not needed."""

    question: str
    context: str
    answer: str | None = None
    answer_start: str | None = None


class FileQuestion(NamedTuple):
    """A question as the file has it, or the reason why it cannot be used.

    Attributes:
        id: SQuAD's id, or `line 7` in a table.
        line: its line, counted from 1.
        question, context: texts; "" with a fault.
        answers: its answers; () for a question without an answer.
        fault: reason and detail why it cannot be used; None if it can.
    """

    id: str
    line: int
    question: str
    context: str
    answers: tuple[Answer, ...]
    fault: Fault | None


def squad_questions(path: str | Path, dialect: TableDialect) -> Iterator[FileQuestion]:
    """Yield the questions of SQuAD JSON, usable or not."""
    for line, context, question, fault in read_squad_entries(path, dialect):
        if fault is not None:
            yield _unusable(line, *fault)
        elif not isinstance(question, dict):
            yield _unusable(line, "question is not a JSON object")
        else:
            yield _squad_question(line, context, question)


def _squad_question(line: int, context: Any, entry: dict[str, Any]) -> FileQuestion:
    """Read a question of SQuAD JSON from its context and its object."""
    identity = cell_text(entry.get("id"))
    question = entry.get("question")
    if not identity:
        return _unusable(line, "question has no id")
    where = f"question {identity!r}"
    if not isinstance(context, str):
        return _unusable(line, "context is missing or not text", where)
    if not isinstance(question, str):
        return _unusable(line, "question is missing or not text", where)
    answers: tuple[Answer, ...] = ()
    if not _is_impossible(entry):
        listed = _as_structs(entry.get("answers"))
        if not isinstance(listed, list):
            return _unusable(line, "question has no list of answers", where)
        for item in listed:
            text = item.get("text") if isinstance(item, dict) else None
            if not isinstance(text, str) or not text.strip():
                return _unusable(line, "answer is missing or not text", where)
            answers += (Answer(text, _whole_number(item.get("answer_start"))),)
    return FileQuestion(identity, line, question, context, answers, None)


def _unusable(line: int, reason: str, detail: str = "") -> FileQuestion:
    return FileQuestion("", line, "", "", (), (reason, detail))


def table_questions(
    path: str | Path,
    columns: QuestionColumns,
    places: Places,
    *,
    check_offsets: bool,
    dialect: TableDialect,
    console: Console | None,
) -> Iterator[FileQuestion]:
    """Yield the questions of a table, usable or not.

    Args:
        path: the file.
        columns: names of its columns.
        places: filled with the places of the rows.
        check_offsets: whether starts of answers are needed.
        dialect: how the file is written.
        console: gets notes of the reader; None for none.

    Raises:
        UsageError: the file is missing or lacks a column.
    """
    blocks = read_table_blocks(
        path,
        dialect=dialect,
        text_columns=(columns.question, columns.context),
        not_ids=(columns.answer or "", columns.answer_start or ""),
        console=console,
    )
    is_first = True
    for block in blocks:
        if is_first:
            columns = _answer_columns(path, columns, block, check_offsets=check_offsets)
            is_first = False
        places.update(block.places)
        for line, row in block.in_order():
            if isinstance(row, Reject):
                yield _unusable(line, row.reason, row.detail)
            else:
                yield _table_question(row, line, columns)


def _answer_columns(
    path: str | Path, columns: QuestionColumns, block: TableBlock, *, check_offsets: bool
) -> QuestionColumns:
    """Return the columns with that of structs, if answers are structs; check that all are there.

    Args:
        path: the file.
        columns: names from the options.
        block: the first rows.
        check_offsets: whether starts of answers are needed.

    Raises:
        UsageError: a column is missing.
    """
    is_absent = columns.answer not in (None, *block.columns)
    if is_absent and any(_structs(row.get(_STRUCTS)) for row in block.rows):
        columns = dataclasses.replace(columns, answer=_STRUCTS)
    if not block.columns:
        return columns
    has_structs = any(_structs(row.get(columns.answer or "")) for row in block.rows)
    needed = [columns.answer]
    if check_offsets and not has_structs:
        needed.append(columns.answer_start)
    check_columns(path, block.header, block.columns, [name for name in needed if name])
    return columns


def _table_question(row: dict[str, Any], line: int, columns: QuestionColumns) -> FileQuestion:
    """Read a question of a table; answers are structs, lists, or a text with its start."""
    texts, starts = _texts_and_starts(row, columns)
    if not all(_is_value(text) for text in texts):
        return _unusable(line, "answer is neither text nor number")
    starts = starts[: len(texts)]
    answers = []
    for text, start in itertools.zip_longest(texts, starts):
        answer = Answer(cell_text(text), _whole_number(start))
        if answer.text.strip():
            answers.append(answer)
    question = row[columns.question]
    context = row[columns.context]
    return FileQuestion(f"line {line}", line, question, context, tuple(answers), None)


def _texts_and_starts(row: dict[str, Any], columns: QuestionColumns) -> tuple[list[Any], list[Any]]:
    """Return the cells with the texts of answers, and those with their starts, as lists."""
    if _is_impossible(row) or not columns.answer:
        return [], []
    structs = _structs(row.get(columns.answer))
    if structs is None:
        return _as_lists(row.get(columns.answer), row.get(columns.answer_start or ""))
    texts: list[Any] = []
    starts: list[Any] = []
    for struct in structs:
        texts += _as_list(struct["text"])
        starts += _as_list(struct.get("answer_start"))
    return texts, starts


def _structs(value: Any) -> list[dict[str, Any]] | None:
    """Return structs of answers with `text` and `answer_start`; None if a cell has none.

    Args:
        value: a struct, a list of structs, or the text of either.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = value_in_text(value)
    structs = value if isinstance(value, list) else [value]
    if not structs or not all(isinstance(each, dict) and "text" in each for each in structs):
        return None
    return structs


def _as_structs(answers: Any) -> Any:
    """Return HuggingFace's struct of two lists as SQuAD's list of structs; others unchanged."""
    if not isinstance(answers, dict) or "text" not in answers:
        return answers
    texts = _as_list(answers["text"])
    starts = _as_list(answers.get("answer_start"))
    pairs = itertools.zip_longest(texts, starts[: len(texts)])
    return [{"text": text, "answer_start": start} for text, start in pairs]


def _is_impossible(entry: dict[str, Any]) -> bool:
    """Return whether SQuAD 2.0 marks a question as unanswerable, by a value or its text.

    Such questions may have plausible answers, which are not used.
    """
    return cell_text(entry.get("is_impossible")).strip().lower() in ("true", "1", "1.0")


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _as_lists(answer: Any, start: Any) -> tuple[list[Any], list[Any]]:
    """Return answers and starts as lists.

    A text is read as a list if its start is one, too, or if all items are texts and no start is
    given; otherwise it is an answer that looks like a list.
    """
    texts = list_in_text(answer) if isinstance(answer, str) else None
    if texts is not None:
        starts = list_in_text(start) if isinstance(start, str) else None
        has_no_start = not cell_text(start).strip()
        if starts is not None or (has_no_start and all(isinstance(text, str) for text in texts)):
            return texts, starts or []
    return _as_list(answer), _as_list(start)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _whole_number(value: Any) -> int:
    """Return a start as number, also of 22.0, as columns with gaps have it; -1 if it is none."""
    if isinstance(value, str):
        match = _WHOLE_NUMBER.fullmatch(value.strip())
        return int(match[1]) if match else -1
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return -1
    return value if 0 <= value < _LONGEST_CONTEXT else -1
