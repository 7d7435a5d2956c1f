"""Rows of a table with a context, choices and the number of the right one."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import Fault, UsageError
from bert_tf.data.tables.cells import cell_text, columns_of_texts, named_texts
from bert_tf.data.tables.dialect import TableBudget, TableDialect
from bert_tf.data.tables.file_rows import FileRows
from bert_tf.data.tables.places import Place, Places
from bert_tf.data.tables.rejects import Reject, keeping_rejects, nothing_usable
from bert_tf.data.tables.tables import TableBlock, read_table_blocks
from bert_tf.tasks.multiple_choice.options import choices_fault

_USUAL_QUESTION = "question"
_LETTER = re.compile(r"\(?([A-Za-z])[).]?")
_SHORTEST_NAME = 4  # `opt1`
_FEW_LABELS = 8  # fewer labels may all differ from 0 by chance
_LETTERS = 26
_WHOLE_NUMBER = re.compile(r"([+-]?\d{1,9})(\.0*)?", re.ASCII)  # 2.0 where a column has gaps


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoiceColumns:
    """Columns of a table; `choices` is a column with lists, or a column for each choice."""

    context: str
    question: str | None
    choices: tuple[str, ...]
    label: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoiceRows(FileRows):
    """The usable rows of a file.

    Attributes:
        contexts: context of each row.
        questions: question of each row; None if rows have no questions.
        choices: texts of each row, at least two.
        right: int64 [rows], number of the right choice, from 0.
        label_form: whether labels of the file are a `number`, a `letter` or a `text`.
    """

    row_fields: ClassVar[tuple[str, ...]] = ("contexts", "questions", "choices", "right")

    contexts: list[str]
    questions: list[str] | None
    choices: list[list[str]]
    right: np.ndarray
    label_form: str

    @property
    def counts(self) -> np.ndarray:
        """Return the number of choices of each row, int64 [rows]."""
        return np.array([len(texts) for texts in self.choices], np.int64)


class _Row(NamedTuple):
    """A row whose choices can be compared.

    Attributes:
        names: names of the choices, such as A, B, C; empty if they have none.
    """

    place: Place
    context: str
    question: str
    choices: list[str]
    names: list[str]
    label: str


def read_choices(
    path: str,
    columns: ChoiceColumns,
    *,
    label_form: str,
    dialect: TableDialect,
    max_rows: int = 0,
    console: Console | None = None,
) -> ChoiceRows:
    """Read labeled rows.

    Args:
        path: the file.
        columns: names of its columns.
        label_form: `number`, `letter`, `text`, or `auto`: numbers if all labels are whole numbers,
            letters if all are letters of choices and none is the text of one, else texts. Labels
            may also be names that a row gives its choices, see `named_texts`.
        dialect: how the file is written.
        max_rows: read only the first rows, rejected ones included (0: all).
        console: gets warnings; None for none.

    Raises:
        InputError: no row can be used, or they take too much memory.
        UsageError: the file is missing or lacks a column, or labels count choices from 1.
    """
    questions = () if columns.question is None else (columns.question,)
    filled: Sequence[str] = ()
    optional: Sequence[str] = columns.choices
    if len(columns.choices) > 1:
        filled, optional = columns_of_texts(columns.choices)
    blocks = read_table_blocks(
        path,
        dialect=dialect,
        text_columns=(columns.context, *questions),
        value_columns=(columns.label, *filled),
        list_columns=optional,
        max_rows=max_rows,
        console=console,
    )
    rejects: list[Reject] = []
    rows: list[_Row] = []
    places = Places()
    budget = TableBudget(path, dialect.max_table_megabytes)
    with keeping_rejects(rejects):
        for row in _usable_rows(path, columns, blocks, rejects, places, console):
            texts = (row.context, row.question, row.label, row.place.id, *row.choices)
            budget.add(1, texts)
            rows.append(row)
    label_form = _check_labels(path, rows, label_form, console)
    kept: list[_Row] = []
    right: list[int] = []
    for row in rows:
        choice = _right_choice_of(row, label_form)
        if isinstance(choice, int):
            kept.append(row)
            right.append(choice)
        else:
            rejects.append(Reject.at(path, row.place, *choice))
    rejects.sort(key=lambda reject: reject.line)
    if not kept:
        raise nothing_usable(path, rejects)
    return ChoiceRows(
        source=path,
        contexts=[row.context for row in kept],
        questions=None if columns.question is None else [row.question for row in kept],
        choices=[row.choices for row in kept],
        right=np.array(right, np.int64),
        lines=[row.place.line for row in kept],
        places=places,
        rejects=rejects,
        label_form=label_form,
    )


def _check_labels(path: str, rows: Sequence[_Row], label_form: str, console: Console | None) -> str:
    """Return the form of the labels, detected for `auto`; refuse labels that count from 1."""
    unnamed = [row for row in rows if row.label.strip() not in row.names]
    if label_form == "auto":
        label_form = _form_of_labels(path, unnamed, console)
    if label_form == "number":
        _check_begins_with_zero(path, unnamed, console)
    return label_form


def _right_choice_of(row: _Row, label_form: str) -> int | Fault:
    """Return the number of the right choice, or reason and detail why the row cannot be used."""
    name = row.label.strip()
    if name in row.names:
        choice = row.names.index(name)
        if choice < len(row.choices):  # else the name of an empty last choice
            return choice
    return _RIGHT_CHOICES[label_form](row)


def _form_of_labels(path: str, rows: Sequence[_Row], console: Console | None) -> str:
    """Detect the form of labels that are not names of choices: `number`, `letter` or `text`."""
    if all(_WHOLE_NUMBER.fullmatch(row.label.strip()) for row in rows):
        if rows and console and all(row.label in row.choices for row in rows):
            console.warn(
                f"{path}: all labels are texts of choices, but read as their numbers; if that is "
                "wrong, give --label-form text"
            )
        return "number"
    if not all(map(_is_letter_only, rows)):
        return "text"
    if console is not None:
        console.info(f"{path}: labels are letters: A is the first choice")
    return "letter"


def _usable_rows(
    path: str,
    columns: ChoiceColumns,
    blocks: Iterable[TableBlock],
    rejects: list[Reject],
    places: Places,
    console: Console | None,
) -> Iterator[_Row]:
    """Yield rows whose choices can be compared.

    Args:
        path: the file, for messages.
        columns: names of its columns.
        blocks: all rows of the file.
        rejects: gets the other rows.
        places: filled with the places of the rows.
        console: gets a warning about an unread column; None for none.
    """
    for number, block in enumerate(blocks):
        if number == 0 and console is not None:
            _warn_of_unread_question(path, columns, block, console)
        rejects += block.rejects
        count = len(block.rows)
        questions = [""] * count if columns.question is None else block.texts(columns.question)
        names = ([name for name, _ in _named_choices(row, columns)] for row in block.rows)
        for line, context, question, choices, named, label in zip(
            block.lines,
            block.texts(columns.context),
            questions,
            block.text_lists(columns.choices),
            names,
            block.texts(columns.label),
            strict=True,
        ):
            fault = choices_fault({"choices": choices})
            place = block.places.at(line)
            if fault is not None:
                rejects.append(Reject.at(path, place, *fault))
            else:
                places.note(place)
                yield _Row(place, context, question, choices or [], named, label)


def _named_choices(row: dict[str, Any], columns: ChoiceColumns) -> list[tuple[str, str]]:
    """Return name and text of each choice if a row names its choices; else an empty list.

    Choices in several columns have the names of the columns. Short names do not count, since labels
    that are letters or numbers may have another meaning.
    """
    if len(columns.choices) == 1:
        return named_texts(row.get(columns.choices[0])) or []
    if min(map(len, columns.choices)) < _SHORTEST_NAME:
        return []
    return [(name, cell_text(row.get(name))) for name in columns.choices]


def _check_begins_with_zero(path: str, rows: Sequence[_Row], console: Console | None) -> None:
    """Raise UsageError if labels count choices from 1; warn if they may."""
    numbered = [row for row in rows if _WHOLE_NUMBER.fullmatch(row.label.strip())]
    if len(numbered) < _FEW_LABELS or min(float(row.label) for row in numbered) != 1:
        return
    line = f"{path}: no label is 0, the first choice"
    if any(float(row.label) == len(row.choices) for row in numbered):
        raise UsageError(f"{line}, and some are the number of choices; count them from 0")
    if console is not None:
        console.warn(f"{line}; if they count choices from 1, count them from 0")


def _numbered(row: _Row) -> int | Fault:
    """Return a label as the number of a choice, or reason and detail why it is none."""
    match = _WHOLE_NUMBER.fullmatch(row.label.strip())
    if match and 0 <= int(match[1]) < len(row.choices):
        return int(match[1])
    detail = f"{row.label!r}, with choices 0 to {len(row.choices) - 1}"
    return "label is not the number of a choice", detail


def _with_letter(row: _Row) -> int | Fault:
    """Return the number of the choice with a label's letter, or reason and detail for none."""
    match = _LETTER.fullmatch(row.label.strip())
    number = -1 if match is None else ord(match[1].upper()) - ord("A")
    if 0 <= number < len(row.choices):
        return number
    last = chr(ord("A") + min(len(row.choices), _LETTERS) - 1)
    return "label is not the letter of a choice", f"{row.label!r}, with choices A to {last}"


def _is_letter_only(row: _Row) -> bool:
    """Whether a label is the letter of a choice, and the text of none."""
    return isinstance(_with_letter(row), int) and not isinstance(_with_text(row), int)


def _with_text(row: _Row) -> int | Fault:
    """Return the number of the choice with a label's text, or reason and detail for none.

    Blanks around texts are ignored if no choice equals the label with them.
    """
    label = row.label
    choices = row.choices
    if label not in choices:
        label = label.strip()
        choices = [choice.strip() for choice in choices]
    equal_choices = choices.count(label)
    if equal_choices == 1:
        return choices.index(label)
    if equal_choices > 1:
        return "label is the text of several choices", repr(row.label)
    advice = "; write its number, from 0" if _LETTER.fullmatch(label) else ""
    return "label is not the text of a choice", f"{row.label!r}{advice}"


_RIGHT_CHOICES: dict[str, Callable[[_Row], int | Fault]] = {
    "number": _numbered,
    "letter": _with_letter,
    "text": _with_text,
}


def _warn_of_unread_question(
    path: str, columns: ChoiceColumns, block: TableBlock, console: Console
) -> None:
    """Warn if a table has the usual column of questions, but no column of questions is named."""
    read: Sequence[str | None] = (columns.context, *columns.choices, columns.label)
    if columns.question is not None or _USUAL_QUESTION in read:
        return
    if _USUAL_QUESTION in block.columns:
        console.warn(
            f"{path}: its column {_USUAL_QUESTION!r} is not read; give --question-column "
            f"{_USUAL_QUESTION} if the choices answer it"
        )
