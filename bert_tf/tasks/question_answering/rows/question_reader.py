"""Reads files of questions: those that can be used, and rejects."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bert_tf.base.console import Console
from bert_tf.data.tables.dialect import PLAIN, TableBudget, TableDialect
from bert_tf.data.tables.formats.squad_json import is_squad_json
from bert_tf.data.tables.rejects import Reject, keeping_rejects, nothing_usable
from bert_tf.data.tables.text_files import has_surrogates
from bert_tf.tasks.question_answering.rows.answer_places import doubtful_answers, place_fault
from bert_tf.tasks.question_answering.rows.question_sources import (
    FoundQuestion,
    squad_questions,
    table_questions,
)
from bert_tf.tasks.question_answering.rows.questions import QuestionColumns, Questions


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
        found = squad_questions(path, dialect)
    else:
        found = table_questions(
            path, columns, check_offsets=check_offsets, dialect=dialect, console=console
        )
    builder = _Builder(str(path), check_offsets=check_offsets, names_questions=names_questions)
    budget = TableBudget(path, dialect.max_table_megabytes)
    with keeping_rejects(builder.rejects):
        for count, question in enumerate(found, start=1):
            if builder.add(question):
                budget.add(0, (question.context,))
            budget.add(
                1, (question.id, question.question, *(answer.text for answer in question.answers))
            )
            if count == max_rows:
                break
    questions = builder.build()
    if console is not None and not check_offsets:
        for line in doubtful_answers(questions):
            console.warn(line)
    return questions


class _Builder:
    """Collects usable questions, each context once, and rejects.

    Args:
        source: the file.
        check_offsets: see `read_questions`.
        names_questions: whether questions have ids of their own.

    Attributes:
        rejects: of the questions that were added.
    """

    def __init__(self, source: str, *, check_offsets: bool, names_questions: bool):
        self._source = source
        self._names_questions = names_questions
        self._check_offsets = check_offsets
        self._questions: list[FoundQuestion] = []
        self._lines: dict[str, int] = {}  # of the questions, by id
        self._contexts: dict[str, int] = {}
        self._context_index: list[int] = []
        self.rejects: list[Reject] = []

    def add(self, found: FoundQuestion) -> bool:
        """Keeps a question or a reject; returns whether a context is kept that was not yet."""
        fault = found.fault or self._fault(found)
        if fault:
            reason, detail = fault
            if self._names_questions and found.fault is None:
                detail = f"question {found.id!r}" + (f": {detail}" if detail else "")
            self.rejects.append(Reject(self._source, found.line, reason, detail))
            return False
        self._lines[found.id] = found.line
        self._questions.append(found)
        known = len(self._contexts)
        self._context_index.append(self._contexts.setdefault(found.context, known))
        return len(self._contexts) > known

    def build(self) -> Questions:
        if not self._questions:
            raise nothing_usable(self._source, self.rejects, noun="question")
        return Questions(
            source=self._source,
            ids=[found.id for found in self._questions],
            lines=[found.line for found in self._questions],
            questions=[found.question for found in self._questions],
            contexts=list(self._contexts),
            context_index=np.array(self._context_index, np.int64),
            answers=[found.answers for found in self._questions],
            rejects=self.rejects,
        )

    def _fault(self, found: FoundQuestion) -> tuple[str, str] | None:
        if found.id in self._lines:
            return "duplicate question id", f"first at line {self._lines[found.id]}"
        for name, text in (("question", found.question), ("context", found.context)):
            if not text.strip():
                return f"{name} is empty", ""
            if has_surrogates(text):
                return f"{name} is not Unicode text", ""
        if any(has_surrogates(answer.text) for answer in found.answers):
            return "answer is not Unicode text", ""
        if not self._check_offsets or not found.answers:
            return None
        return place_fault(found.answers[0], found.context)
