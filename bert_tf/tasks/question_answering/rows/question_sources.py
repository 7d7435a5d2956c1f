"""SQuAD 1.1 and 2.0 JSON, or a table of questions, to questions that are not checked yet."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.base.console import Console
from bert_tf.data.tables.cells import cell_text, check_columns, list_in_text, value_in_text
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.squad_json import read_squad_entries
from bert_tf.data.tables.tables import read_table_blocks
from bert_tf.tasks.question_answering.rows.questions import Answer, QuestionColumns

_WHOLE_NUMBER = re.compile(r"(\d{1,9})(\.0*)?", re.ASCII)
_LONGEST_CONTEXT = 10**9  # characters
_STRUCTS = "answers"  # the column of HuggingFace's rows, whose structs have text and answer_start


class FoundQuestion(NamedTuple):
    """One question as found, or why it cannot be used."""

    id: str
    line: int
    question: str
    context: str
    answers: tuple[Answer, ...]
    fault: tuple[str, str] | None


def squad_questions(path: str | Path, dialect: TableDialect) -> Iterator[FoundQuestion]:
    for line, context, question, fault in read_squad_entries(path, dialect):
        if fault is not None:
            yield _unusable(line, *fault)
        elif not isinstance(question, dict):
            yield _unusable(line, "question is not a JSON object")
        else:
            yield _squad_question(line, context, question)


def _squad_question(line: int, context: Any, entry: dict[str, Any]) -> FoundQuestion:
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
    return FoundQuestion(identity, line, question, context, answers, None)


def _unusable(line: int, reason: str, detail: str = "") -> FoundQuestion:
    return FoundQuestion("", line, "", "", (), (reason, detail))


def table_questions(
    path: str | Path,
    columns: QuestionColumns,
    *,
    check_offsets: bool,
    dialect: TableDialect,
    console: Console | None,
) -> Iterator[FoundQuestion]:
    blocks = read_table_blocks(
        path,
        dialect=dialect,
        text_columns=(columns.question, columns.context),
        console=console,
    )
    is_first = True
    for block in blocks:
        is_absent = is_first and columns.answer not in (None, *block.columns)
        if is_absent and any(_structs(row.get(_STRUCTS)) for row in block.rows):
            columns = dataclasses.replace(columns, answer=_STRUCTS)
        structs = [_structs(row.get(columns.answer or "")) for row in block.rows]
        if is_first and block.columns:
            has_starts = any(each is not None for each in structs) or not check_offsets
            needed = (columns.answer, None if has_starts else columns.answer_start)
            check_columns(path, block.header, block.columns, [name for name in needed if name])
        is_first = False
        found = [
            _table_question(row, line, columns, listed)
            for row, line, listed in zip(block.rows, block.lines, structs, strict=True)
        ]
        found += [_unusable(reject.line, reject.reason, reject.detail) for reject in block.rejects]
        yield from sorted(found, key=lambda question: question.line)


def _table_question(
    row: dict[str, Any], line: int, columns: QuestionColumns, structs: Sequence[dict] | None
) -> FoundQuestion:
    texts: list[Any] = []
    starts: list[Any] = []
    if _is_impossible(row):
        pass
    elif structs is not None:
        texts = [text for each in structs for text in _as_list(each["text"])]
        starts = [start for each in structs for start in _as_list(each.get("answer_start"))]
    elif columns.answer:
        texts, starts = _as_lists(row.get(columns.answer), row.get(columns.answer_start or ""))
    if not all(_is_value(text) for text in texts):
        return _unusable(line, "answer is neither text nor number")
    numbers = [_whole_number(start) for start in starts]
    numbers += [-1] * (len(texts) - len(numbers))
    answers = tuple(
        Answer(cell_text(text), start)
        for text, start in zip(texts, numbers, strict=False)
        if cell_text(text).strip()
    )
    question, context = row[columns.question], row[columns.context]
    return FoundQuestion(f"line {line}", line, question, context, answers, None)


def _structs(value: Any) -> list[dict[str, Any]] | None:
    """The structs of answers, each with `text` and `answer_start`, or with lists of them; None of
    anything else. In CSV they are texts as JSON, Python or pandas writes them."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = value_in_text(value)
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(each, dict) and "text" in each for each in listed):
        return None
    return listed


def _as_structs(answers: Any) -> Any:
    """HuggingFace's struct of two lists as SQuAD's list of structs; anything else as it is."""
    if not isinstance(answers, dict) or "text" not in answers:
        return answers
    texts, starts = _as_list(answers["text"]), _as_list(answers.get("answer_start"))
    pairs = itertools.zip_longest(texts, starts[: len(texts)])
    return [{"text": text, "answer_start": start} for text, start in pairs]


def _is_impossible(entry: dict[str, Any]) -> bool:
    """Whether a question is marked as one without an answer, as in SQuAD 2.0, whose plausible
    answers some tools keep; tables write truth values as text or number."""
    return cell_text(entry.get("is_impossible")).strip().lower() in ("true", "1", "1.0")


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _as_lists(answer: Any, start: Any) -> tuple[list[Any], list[Any]]:
    """Answers and their starts; texts are lists where both are written as one, and those of quoted
    texts where no start says that it is the answer itself."""
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
    """The number, -1 if there is none: no answer starts there.

    Tables write whole numbers as 22.0 where a column has gaps; JSON may too.
    """
    if isinstance(value, str):
        match = _WHOLE_NUMBER.fullmatch(value.strip())
        return int(match[1]) if match else -1
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return -1
    return value if 0 <= value < _LONGEST_CONTEXT else -1
