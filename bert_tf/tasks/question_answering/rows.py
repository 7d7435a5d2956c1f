"""Questions with their contexts and answers, from SQuAD JSON (1.1, 2.0) or a table."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import Fault
from bert_tf.base.wording import quantity
from bert_tf.data.tables.cells import cell_text, check_columns, list_in_text, value_in_text
from bert_tf.data.tables.dialect import PLAIN, TableBudget, TableDialect
from bert_tf.data.tables.file_rows import FileRows
from bert_tf.data.tables.formats.squad_json import is_squad_json, read_squad_entries
from bert_tf.data.tables.places import Places
from bert_tf.data.tables.rejects import Reject, keeping_rejects, nothing_usable
from bert_tf.data.tables.tables import read_table_blocks
from bert_tf.data.tables.text_files import has_surrogates

_SHOWN = 5
_WHOLE_NUMBER = re.compile(r"(\d{1,9})(\.0*)?", re.ASCII)
_LONGEST_CONTEXT = 10**9  # characters
_STRUCTS = "answers"  # the column of HuggingFace's rows, whose structs have text and answer_start
_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Return a text in lower case, its words separated by one space.

    Without punctuation and articles, as the official scripts do.
    """
    bare = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


class Answer(NamedTuple):
    """A text and the character of the context it starts at, -1 if that is not given."""

    text: str
    start: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionColumns:
    """Columns of a table; those of answers are None if they are not needed."""

    question: str
    context: str
    answer: str | None = None
    answer_start: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Questions(FileRows):
    """The usable questions of a file.

    Attributes:
        ids: SQuAD's ids, or the lines of a table.
        contexts: every context once.
        context_index: int64 [questions], the context of each question.
        answers: of each question; none for a question without an answer.
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
        return [[answer.text for answer in listed] for listed in self.answers]

    @property
    def names(self) -> list[str]:
        """Return the name of each question in messages: its id, or its place in a table."""
        pairs = zip(self.ids, self.all_places, strict=True)
        return [f"line {place}" if name == f"line {place.line}" else name for name, place in pairs]

    def counted(self) -> str:
        without = sum(not listed for listed in self.answers)
        return f"{quantity(len(self), 'question')}, {without:,} of them without an answer"

    def selected(self, rows: np.ndarray, rejects: list[Reject]) -> Self:
        """Select questions, and leave out contexts of the others."""
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
        check_offsets: whether to reject questions whose answer is not at the given position, as
            training must; measuring needs only the text.
        dialect: how the file is written.
        max_rows: how many of its first questions are read, rejected ones included; 0 for all.
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
            budget.add(
                1, (question.id, question.question, *(answer.text for answer in question.answers))
            )
            if count == max_rows:
                break
    questions = builder.build()
    if console is not None and not check_offsets:
        console.warn(*doubtful_answers(questions))
    return questions


class FoundQuestion(NamedTuple):
    """One question as found, or why it cannot be used."""

    id: str
    line: int
    question: str
    context: str
    answers: tuple[Answer, ...]
    fault: Fault | None


class _Questions:
    """Collects usable questions, with every context once, and rejects; `places` names rows."""

    def __init__(self, source: str, places: Places, *, check_offsets: bool, names_questions: bool):
        self._source = source
        self._places = places
        self._names_questions = names_questions
        self._check_offsets = check_offsets
        self._questions: list[FoundQuestion] = []
        self._lines: dict[str, int] = {}  # of the questions, by id
        self._contexts: dict[str, int] = {}
        self._context_index: list[int] = []
        self.rejects: list[Reject] = []

    def add(self, question: FoundQuestion) -> bool:
        """Keep a question or a reject; return whether its context is new."""
        fault = question.fault or self._fault(question)
        if fault:
            reason, detail = fault
            if self._names_questions and question.fault is None:
                detail = f"question {question.id!r}" + (f": {detail}" if detail else "")
            place = self._places.at(question.line)
            self.rejects.append(Reject.at(self._source, place, reason, detail))
            return False
        self._lines[question.id] = question.line
        self._questions.append(question)
        known = len(self._contexts)
        self._context_index.append(self._contexts.setdefault(question.context, known))
        return len(self._contexts) > known

    def build(self) -> Questions:
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

    def _fault(self, question: FoundQuestion) -> Fault | None:
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
        answer: the first of the question.
        context: the text that must have the answer at its start.
    """
    text, start = answer
    if start < 0:
        return "answer has no start that is a whole number", repr(text)
    if context.startswith(text, start):
        return None
    there = f"{text!r} at {start}, where the context has {context[start : start + len(text)]!r}"
    nearest = _nearest_place(answer, context)
    if nearest is None:
        return "answer is not in the context", there
    return "answer is not at its start", f"{there}; it has the answer at {nearest}"


def doubtful_answers(questions: Questions) -> Iterator[str]:
    """Yield warnings on evaluation questions whose gold answers are likely wrong."""
    absent, misplaced = [], []
    for identity, listed, index in zip(
        questions.names, questions.answers, questions.context_index, strict=True
    ):
        context = questions.contexts[index]
        if not listed:
            continue
        text, start = listed[0]
        if not any(_is_in(answer.text, context) for answer in listed):
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
    return text in context or normalize_answer(text) in normalize_answer(context)


def _nearest_place(answer: Answer, context: str) -> int | None:
    """Return the place of the answer in the context, of several the one nearest to its start."""
    text, start = answer
    places = {context.rfind(text, 0, start + len(text)), context.find(text, start)} - {-1}
    return min(places, key=lambda place: abs(place - start), default=None)


def _shown(ids: Sequence[str]) -> str:
    listed = ", ".join(ids[:_SHOWN])
    return listed if len(ids) <= _SHOWN else f"{listed} and {len(ids) - _SHOWN:,} more"


def squad_questions(path: str | Path, dialect: TableDialect) -> Iterator[FoundQuestion]:
    """Yield the questions of SQuAD JSON, usable or not."""
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
    places: Places,
    *,
    check_offsets: bool,
    dialect: TableDialect,
    console: Console | None,
) -> Iterator[FoundQuestion]:
    """Yield the questions of a table, usable or not.

    Args:
        path: the file.
        columns: names of its columns.
        places: gets those of the rows.
        check_offsets: whether starts of answers are needed.
        dialect: how the file is written.
        console: gets warnings of the reader; None for none.

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
        is_absent = is_first and columns.answer not in (None, *block.columns)
        if is_absent and any(_structs(row.get(_STRUCTS)) for row in block.rows):
            columns = dataclasses.replace(columns, answer=_STRUCTS)
        if is_first and block.columns:
            has_starts = not check_offsets or any(
                _structs(row.get(columns.answer or "")) for row in block.rows
            )
            needed = (columns.answer, None if has_starts else columns.answer_start)
            check_columns(path, block.header, block.columns, [name for name in needed if name])
        is_first = False
        places.update(block.places)
        for line, row in block.in_order():
            if isinstance(row, Reject):
                yield _unusable(line, row.reason, row.detail)
            else:
                yield _table_question(row, line, columns)


def _table_question(row: dict[str, Any], line: int, columns: QuestionColumns) -> FoundQuestion:
    """Read a question of a table; answers are structs, lists, or a text with its start."""
    texts: list[Any] = []
    starts: list[Any] = []
    structs = _structs(row.get(columns.answer or ""))
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
    """Return structs of answers with `text` and `answer_start`, parsed in CSV; else None."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = value_in_text(value)
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(each, dict) and "text" in each for each in listed):
        return None
    return listed


def _as_structs(answers: Any) -> Any:
    """Return HuggingFace's struct of two lists as SQuAD's list of structs; others unchanged."""
    if not isinstance(answers, dict) or "text" not in answers:
        return answers
    texts, starts = _as_list(answers["text"]), _as_list(answers.get("answer_start"))
    pairs = itertools.zip_longest(texts, starts[: len(texts)])
    return [{"text": text, "answer_start": start} for text, start in pairs]


def _is_impossible(entry: dict[str, Any]) -> bool:
    """Return whether SQuAD 2.0 marks a question as unanswerable, also as text.

    Such questions may have plausible answers.
    """
    return cell_text(entry.get("is_impossible")).strip().lower() in ("true", "1", "1.0")


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _as_lists(answer: Any, start: Any) -> tuple[list[Any], list[Any]]:
    """Return answers and starts as lists; texts without starts may be written as one text."""
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
    """Return the number, also 22.0 as in columns with gaps; -1 if there is none."""
    if isinstance(value, str):
        match = _WHOLE_NUMBER.fullmatch(value.strip())
        return int(match[1]) if match else -1
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return -1
    return value if 0 <= value < _LONGEST_CONTEXT else -1
