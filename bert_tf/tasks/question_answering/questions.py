"""Questions with contexts and answers: SQuAD 1.1 and 2.0 JSON, or a table of questions."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.data.tables.budget import TableBudget
from bert_tf.data.tables.cells import cell_text
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.squad_json import is_squad_json, read_squad_entries
from bert_tf.data.tables.tables import check_columns, read_table_blocks
from bert_tf.data.tables.text_files import has_surrogates

_WHOLE_NUMBER = re.compile(r"(\d{1,9})(\.0*)?", re.ASCII)
_LONGEST_CONTEXT = 10**9  # characters


class Answer(NamedTuple):
    """A text and the character of the context it starts at, -1 where that is not given."""

    text: str
    start: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionColumns:
    """Where a table holds what; answers are None where they are not needed."""

    question: str
    context: str
    answer: str | None = None
    answer_start: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Questions:
    """Usable questions of a file.

    Attributes:
        source: the file.
        ids: SQuAD's ids, or the lines of a table.
        lines: the line each question begins on, counted from 1.
        questions: the texts.
        contexts: every context once.
        context_index: int64 [questions], the context of each question.
        answers: the answers of each question, none for a question without an answer.
        rejects: questions that cannot be used.
    """

    source: str
    ids: list[str]
    lines: list[int]
    questions: list[str]
    contexts: list[str]
    context_index: np.ndarray
    answers: list[tuple[Answer, ...]]
    rejects: list[Reject]

    def __len__(self) -> int:
        return len(self.ids)


def read_questions(
    path: str | Path,
    columns: QuestionColumns,
    *,
    check_offsets: bool,
    dialect: TableDialect = PLAIN,
    max_rows: int = 0,
    console: Console | None = None,
) -> Questions:
    """Reads SQuAD JSON (a `.json` file with a `data` list) or a table.

    In a table a question without an answer has an empty answer; JSON lines may hold lists of
    answers and of starts.

    Args:
        path: the file.
        columns: the columns of a table; SQuAD JSON has its own names.
        check_offsets: reject questions whose answer is not at the given position, as training
            must; measuring needs only the text.
        dialect: encoding of the file, and whether a table has a header.
        max_rows: read only the first questions, rejected ones included (0: all).
        console: where lines for the user go.

    Raises:
        InputError: the file is damaged, no question can be used, or they take more memory than
            `dialect.max_table_megabytes`.
        UsageError: the file is missing or lacks a column.
    """
    names_questions = is_squad_json(path)
    if names_questions:
        found = _squad_questions(path, dialect)
    else:
        found = _table_questions(
            path, columns, check_offsets=check_offsets, dialect=dialect, console=console
        )
    builder = _Builder(str(path), check_offsets=check_offsets, names_questions=names_questions)
    budget = TableBudget(path, dialect.max_table_megabytes)
    for count, question in enumerate(found, start=1):
        if builder.add(question):
            budget.add(0, (question.context,))
        budget.add(
            1, (question.id, question.question, *(answer.text for answer in question.answers))
        )
        if count == max_rows:
            break
    return builder.build()


class _Question(NamedTuple):
    """One question as found, or why it cannot be used."""

    id: str
    line: int
    question: str
    context: str
    answers: tuple[Answer, ...]
    fault: tuple[str, str] | None


class _Builder:
    """Collects usable questions, each context once, and rejects.

    Args:
        source: the file.
        check_offsets: see `read_questions`.
        names_questions: whether questions have ids of their own.
    """

    def __init__(self, source: str, *, check_offsets: bool, names_questions: bool):
        self._source = source
        self._names_questions = names_questions
        self._check_offsets = check_offsets
        self._questions: list[_Question] = []
        self._ids: set[str] = set()
        self._contexts: dict[str, int] = {}
        self._context_index: list[int] = []
        self._rejects: list[Reject] = []

    def add(self, found: _Question) -> bool:
        """Keeps a question or a reject; returns whether a context is kept that was not yet."""
        fault = found.fault or self._fault(found)
        if fault:
            reason, detail = fault
            if self._names_questions and found.fault is None:
                detail = f"question {found.id!r}" + (f": {detail}" if detail else "")
            self._rejects.append(Reject(self._source, found.line, reason, detail))
            return False
        self._ids.add(found.id)
        self._questions.append(found)
        known = len(self._contexts)
        self._context_index.append(self._contexts.setdefault(found.context, known))
        return len(self._contexts) > known

    def build(self) -> Questions:
        if not self._questions:
            first = f"; the first: {self._rejects[0]}" if self._rejects else ""
            raise InputError(f"{self._source}: holds no question that can be used{first}")
        return Questions(
            source=self._source,
            ids=[found.id for found in self._questions],
            lines=[found.line for found in self._questions],
            questions=[found.question for found in self._questions],
            contexts=list(self._contexts),
            context_index=np.array(self._context_index, np.int64),
            answers=[found.answers for found in self._questions],
            rejects=self._rejects,
        )

    def _fault(self, found: _Question) -> tuple[str, str] | None:
        if found.id in self._ids:
            return "duplicate question id", ""
        for name, text in (("question", found.question), ("context", found.context)):
            if not text.strip():
                return f"{name} is empty", ""
            if has_surrogates(text):
                return f"{name} is not Unicode text", ""
        if any(has_surrogates(answer.text) for answer in found.answers):
            return "answer is not Unicode text", ""
        if not self._check_offsets or not found.answers:
            return None
        text, start = found.answers[0]
        if start < 0:
            return "answer has no start that is a whole number", repr(text)
        if found.context.startswith(text, start):
            return None
        there = found.context[start : start + len(text)]
        return "answer is not at its start", f"{text!r} at {start}, where the context has {there!r}"


def _squad_questions(path: str | Path, dialect: TableDialect) -> Iterator[_Question]:
    for line, context, question, fault in read_squad_entries(path, dialect):
        if fault is not None:
            yield _unusable(line, *fault)
        elif not isinstance(question, dict):
            yield _unusable(line, "question is not a JSON object")
        else:
            yield _squad_question(line, context, question)


def _squad_question(line: int, context: Any, entry: dict[str, Any]) -> _Question:
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
    if entry.get("is_impossible") is not True:
        listed = entry.get("answers")
        if not isinstance(listed, list):
            return _unusable(line, "question has no list of answers", where)
        for item in listed:
            text = item.get("text") if isinstance(item, dict) else None
            if not isinstance(text, str) or not text.strip():
                return _unusable(line, "answer is missing or not text", where)
            answers += (Answer(text, _whole_number(item.get("answer_start"))),)
    return _Question(identity, line, question, context, answers, None)


def _unusable(line: int, reason: str, detail: str = "") -> _Question:
    return _Question("", line, "", "", (), (reason, detail))


def _table_questions(
    path: str | Path,
    columns: QuestionColumns,
    *,
    check_offsets: bool,
    dialect: TableDialect,
    console: Console | None,
) -> Iterator[_Question]:
    blocks = read_table_blocks(
        path,
        dialect=dialect,
        text_columns=(columns.question, columns.context),
        console=console,
    )
    answers = (columns.answer, columns.answer_start if check_offsets else None)
    needed = [name for name in answers if name is not None]
    for block in blocks:
        if block.columns:
            check_columns(path, block.header, block.columns, needed)
        found = [
            _table_question(row, line, columns)
            for row, line in zip(block.rows, block.lines, strict=True)
        ]
        found += [_unusable(reject.line, reject.reason, reject.detail) for reject in block.rejects]
        yield from sorted(found, key=lambda question: question.line)


def _table_question(row: dict[str, Any], line: int, columns: QuestionColumns) -> _Question:
    texts = _as_list(row.get(columns.answer)) if columns.answer else []
    starts = _as_list(row.get(columns.answer_start)) if columns.answer_start else []
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
    return _Question(f"line {line}", line, question, context, answers, None)


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


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
