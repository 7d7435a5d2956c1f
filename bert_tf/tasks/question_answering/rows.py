"""The usable questions of a file with their contexts and answers, and checks of the answers."""

from __future__ import annotations

import dataclasses
import re
import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import Fault
from bert_tf.base.wording import quantity
from bert_tf.data.tables.dialect import PLAIN, TableBudget, TableDialect
from bert_tf.data.tables.file_rows import FileRows
from bert_tf.data.tables.formats.squad_json import is_squad_json
from bert_tf.data.tables.places import Places
from bert_tf.data.tables.rejects import Reject, keeping_rejects, nothing_usable
from bert_tf.data.tables.text_files import has_surrogates
from bert_tf.tasks.question_answering.question_files import (
    Answer,
    FileQuestion,
    QuestionColumns,
    squad_questions,
    table_questions,
)

_SHOWN = 5  # questions named in a warning
_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Normalize an answer for comparison, as the official scripts of SQuAD do.

    Case, punctuation and articles are removed, and words are separated by one space.
    """
    bare = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Questions(FileRows):
    """The usable questions of a file.

    Attributes:
        ids: id of each question in SQuAD, or `line 7` in a table.
        questions: text of each question.
        contexts: every context once.
        context_index: int64 [questions], the context of each question.
        answers: answers of each question; () for a question without an answer.
    """

    noun: ClassVar[str] = "question"
    row_fields: ClassVar[tuple[str, ...]] = ("ids", "questions", "context_index", "answers")

    ids: list[str]
    questions: list[str]
    contexts: list[str]
    context_index: np.ndarray
    answers: list[tuple[Answer, ...]]

    @property
    def golds(self) -> list[list[str]]:
        """Return the texts of the answers of each question."""
        return [[answer.text for answer in listed] for listed in self.answers]

    @property
    def names(self) -> list[str]:
        """Return the name of each question in messages: its id, or its place in a table."""
        pairs = zip(self.ids, self.all_places, strict=True)
        return [f"line {place}" if name == f"line {place.line}" else name for name, place in pairs]

    def counted(self) -> str:
        """Return a text with the numbers of questions and of those without an answer."""
        without = sum(not listed for listed in self.answers)
        return f"{quantity(len(self), 'question')}, {without:,} of them without an answer"

    def selected(self, rows: np.ndarray, rejects: list[Reject]) -> Self:
        """Return some of the questions, and only their contexts."""
        chosen = super().selected(rows, rejects)
        used, context_index = np.unique(chosen.context_index, return_inverse=True)
        contexts = [self.contexts[context] for context in used]
        return dataclasses.replace(chosen, contexts=contexts, context_index=context_index)


def read_questions(
    path: str | Path,
    columns: QuestionColumns,
    *,
    check_offsets: bool,
    dialect: TableDialect = PLAIN,
    max_rows: int = 0,
    console: Console | None = None,
) -> Questions:
    """Read SQuAD JSON (a `.json` file with a `data` list) or a table.

    In a table a question without an answer has an empty answer; JSON lines may hold lists of
    answers and of starts.

    Args:
        path: the file.
        columns: names of a table's columns.
        check_offsets: whether to reject questions whose answer is not at its start. Training needs
            that; metrics only need the text.
        dialect: how the file is written.
        max_rows: read only the first questions, rejected ones included (0: all).
        console: gets warnings about answers; None for none.

    Raises:
        InputError: no question can be used, or they take too much memory.
        UsageError: the file is missing or lacks a column.
    """
    names_questions = is_squad_json(path)
    places = Places()
    if names_questions:
        rows = squad_questions(path, dialect)
    else:
        rows = table_questions(
            path, columns, places, check_offsets=check_offsets, dialect=dialect, console=console
        )
    builder = _Questions(
        str(path), places, check_offsets=check_offsets, names_questions=names_questions
    )
    budget = TableBudget(path, dialect.max_table_megabytes)
    with keeping_rejects(builder.rejects):
        for count, question in enumerate(rows, start=1):
            if builder.add(question):
                budget.add(0, (question.context,))
            answers = (answer.text for answer in question.answers)
            budget.add(1, (question.id, question.question, *answers))
            if count == max_rows:
                break
    questions = builder.build()
    if console is not None and not check_offsets:
        console.warn(*doubtful_answers(questions))
    return questions


class _Questions:
    """Collects usable questions, with every context once, and rejects.

    Args:
        source: the file.
        places: places of its rows, for rejects.
        check_offsets: whether answers must be at their starts.
        names_questions: whether questions have ids of their own, as in SQuAD JSON.
    """

    def __init__(self, source: str, places: Places, *, check_offsets: bool, names_questions: bool):
        self._source = source
        self._places = places
        self._names_questions = names_questions
        self._check_offsets = check_offsets
        self._questions: list[FileQuestion] = []
        self._lines: dict[str, int] = {}  # of the questions, by id
        self._contexts: dict[str, int] = {}
        self._context_index: list[int] = []
        self.rejects: list[Reject] = []

    def add(self, question: FileQuestion) -> bool:
        """Keep a question or a reject; return whether its context is new."""
        fault = question.fault or self._fault(question)
        if fault:
            reason, detail = fault
            if self._names_questions and question.fault is None:
                name = f"question {question.id!r}"
                detail = f"{name}: {detail}" if detail else name
            place = self._places.at(question.line)
            self.rejects.append(Reject.at(self._source, place, reason, detail))
            return False
        self._lines[question.id] = question.line
        self._questions.append(question)
        known = len(self._contexts)
        self._context_index.append(self._contexts.setdefault(question.context, known))
        return len(self._contexts) > known

    def build(self) -> Questions:
        """Return all usable questions; raise RowsRejected if there are none."""
        if not self._questions:
            raise nothing_usable(self._source, self.rejects, noun=Questions.noun)
        return Questions(
            source=self._source,
            ids=[question.id for question in self._questions],
            lines=[question.line for question in self._questions],
            questions=[question.question for question in self._questions],
            contexts=list(self._contexts),
            context_index=np.array(self._context_index, np.int64),
            answers=[question.answers for question in self._questions],
            rejects=self.rejects,
            places=self._places,
        )

    def _fault(self, question: FileQuestion) -> Fault | None:
        """Return reason and detail if a question cannot be used; None if it can."""
        if question.id in self._lines:
            return "duplicate question id", f"first at line {self._lines[question.id]}"
        for name in ("id", "question", "context"):
            text = getattr(question, name)
            if not text.strip():
                return f"{name} is empty", ""
            if has_surrogates(text):
                return f"{name} is not Unicode text", ""
        if any(has_surrogates(answer.text) for answer in question.answers):
            return "answer is not Unicode text", ""
        if not self._check_offsets or not question.answers:
            return None
        return place_fault(question.answers[0], question.context)


def place_fault(answer: Answer, context: str) -> Fault | None:
    """Return reason and detail if a question cannot be trained on; None if it can.

    Args:
        answer: the first answer of the question.
        context: the text that must have the answer at the given start.
    """
    text, start = answer
    if start < 0:
        return "answer has no start that is a whole number", repr(text)
    if context.startswith(text, start):
        return None
    text_there = context[start : start + len(text)]
    there = f"{text!r} at {start}, where the context has {text_there!r}"
    nearest = _nearest_place(answer, context)
    if nearest is None:
        return "answer is not in the context", there
    return "answer is not at its start", f"{there}; it has the answer at {nearest}"


def doubtful_answers(questions: Questions) -> Iterator[str]:
    """Yield warnings on evaluation questions whose gold answers are likely wrong."""
    absent: list[str] = []
    misplaced: list[str] = []
    for identity, answers, index in zip(
        questions.names, questions.answers, questions.context_index, strict=True
    ):
        context = questions.contexts[index]
        if not answers:
            continue
        text, start = answers[0]
        if not any(_is_in(answer.text, context) for answer in answers):
            absent.append(identity)
        elif start >= 0 and not context.startswith(text, start):
            misplaced.append(identity)
    total = quantity(len(questions), "question")
    if absent:
        yield (
            f"{questions.source}: {len(absent):,} of {total} have an answer that is not in the "
            f"context, so that no prediction can match it exactly: {_shown(absent)}"
        )
    if misplaced:
        yield (
            f"{questions.source}: {len(misplaced):,} of {total} have an answer that is not at its "
            f"start; metrics compare its text, and the loss leaves it out: {_shown(misplaced)}"
        )


def _is_in(text: str, context: str) -> bool:
    """Return whether a context has an answer, as it is or normalized."""
    return text in context or normalize_answer(text) in normalize_answer(context)


def _nearest_place(answer: Answer, context: str) -> int | None:
    """Return the place of an answer in the context that is nearest to its start; None for none."""
    text, start = answer
    before = context.rfind(text, 0, start + len(text))
    after = context.find(text, start)
    places = {before, after} - {-1}
    return min(places, key=lambda place: abs(place - start), default=None)


def _shown(ids: Sequence[str]) -> str:
    listed = ", ".join(ids[:_SHOWN])
    return listed if len(ids) <= _SHOWN else f"{listed} and {len(ids) - _SHOWN:,} more"
