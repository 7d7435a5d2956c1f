"""Column statistics, and guesses which column is the text, the label, and so on.

A guess takes a fitting column with a usual name; otherwise the fitting column of the lowest rank.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import shortened
from bert_tf.data.tables.cells import (
    GAPS,
    cell_text,
    is_name,
    list_in_text,
    value_in_text,
)
from bert_tf.data.tables.header_hints import check_is_no_other, export_hint, header_below
from bert_tf.data.tables.label_lists import LABEL_SEPARATORS, labels_of_object, lists_of_databases

ColumnKind = Literal["text", "number", "list", "object", "empty"]

_SHOWN_COLUMNS = 10  # in a message
_MOST_LABELS = 500  # different values of a column of labels
_MOST_WORDS_OF_LABEL = 6  # mean of a column of labels
_LEAST_WORDS_OF_TEXT = 2.0  # mean of a column of texts
_WORDS_OF_SENTENCE = 4  # at least; names of columns have fewer
_USUAL_SEPARATORS = frozenset(("|", ";", ","))
_TRUTHS = frozenset(
    (
        *("0", "1", "0.0", "1.0", "true", "false", "t", "f", "yes", "no", "y", "n", "x"),
        *("✓", "✔", "☑", "☐"),
    )
)
_NO_NUMBERS = GAPS | {"na", "n/a"}  # in columns of numbers, as pandas and R write missing ones
_SEPARATED_CELLS = 0.1  # fraction of cells with a separator that makes them lists


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColumnSketch:
    """Statistics of a column over a sample of the rows."""

    name: str  # of the column
    kind: ColumnKind  # of its cells; numbers may be written as text
    rows: int  # rows of the sample
    filled: int  # cells that are not empty
    distinct: int  # different values of the filled cells
    whole: bool  # whether all are whole numbers
    binary: bool  # whether all say yes or no
    characters: float  # mean over the filled cells
    words: float  # mean over the filled cells
    separator: str | None  # of labels in a cell, if its texts look like lists of them
    example: str  # the first filled cell

    @property
    def is_text(self) -> bool:
        """Whether it has sentences or longer texts, also in scripts without blanks."""
        has_words = self.words >= _LEAST_WORDS_OF_TEXT
        return self.kind == "text" and (has_words or not self.example.isascii())

    @property
    def is_label(self) -> bool:
        """Whether its values are few and short: the labels of a classification."""
        is_value = self.kind == "text" or (self.kind == "number" and self.whole)
        most = min(_MOST_LABELS, max(2, self.filled // 2), self.filled - 1)
        return is_value and self.words <= _MOST_WORDS_OF_LABEL and 2 <= self.distinct <= most

    @property
    def is_quantity(self) -> bool:
        """Whether it has quantities, not row numbers."""
        counts_rows = self.whole and self.distinct == self.filled and self.filled > 2
        return self.kind == "number" and self.distinct > 1 and not counts_rows

    @property
    def is_label_list(self) -> bool:
        """Whether its cells are lists of labels."""
        return self.kind == "list" or self.separator is not None

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}, {self.distinct:,} different)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableSketch:
    """The columns of a table, and the choices made among them so far."""

    path: str  # the table
    columns: tuple[ColumnSketch, ...]  # in its order
    chosen: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # column by config key
    # Other columns that fit, by config key, where a column without a usual name was chosen
    rivals: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    def column(self, key: str, what: str, **choice: Any) -> str:
        """Choose the column for a config key.

        Args:
            key: of the config.
            what: the kind of column needed, for the message.
            choice: other arguments of `find`.

        Raises:
            UsageError: no column can be it.
        """
        name = self.find(key, **choice)
        if name is None:
            raise self.missing(key, what, choice["names"])
        return name

    def find(
        self,
        key: str,
        *,
        names: Sequence[str],
        fits: Callable[[ColumnSketch], bool] = lambda each: each.kind != "empty",
        rank: Callable[[ColumnSketch], float] | None = None,
        taken: Iterable[str | None] = (),
    ) -> str | None:
        """Choose the column for a config key: the given one, else the most likely one, else None.

        Args:
            key: of the config.
            names: usual names in lower case, the most likely first; they win over the rank.
            fits: whether a column can be it.
            rank: the lowest of the columns that fit is taken; None to choose only by names.
            taken: columns already in use.
        """
        if self.chosen.get(key) is not None:
            return str(self.chosen[key])
        others = set(taken)
        fitting = [each for each in self.columns if each.name not in others and fits(each)]
        by_name = {each.name.lower(): each.name for each in reversed(fitting)}
        for name in names:
            if name in by_name:
                return by_name[name]
        if rank is None or not fitting:
            return None
        best, *rivals = (each.name for each in sorted(fitting, key=rank))
        if rivals:
            self.rivals[key] = rivals
        return best

    def missing(self, key: str, what: str, names: Sequence[str] = ()) -> UsageError:
        """Return the error for a column that cannot be guessed; it explains how to name one.

        Args:
            key: of the config.
            what: the kind of column needed.
            names: its usual names, which are searched for in lines below the header.
        """
        check_is_no_other(self.path)
        shown = ", ".join(map(str, self.columns[:_SHOWN_COLUMNS]))
        if len(self.columns) > _SHOWN_COLUMNS:
            shown += f" and {len(self.columns) - _SHOWN_COLUMNS:,} more"
        below = header_below(self.path, 1, names)
        if below is not None:
            return UsageError(f"{self.path}: no column looks like {what}; it has {shown}; {below}")
        hint = export_hint(each.name for each in self.columns)
        return UsageError(
            f"{self.path}: no column looks like {what}; it has {shown}; {hint}name it: "
            f"--set finetune.{key}=COLUMN (of a file without a header --set finetune.header=no, "
            "and the column's number)"
        )


def check_first_line(path: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise UsageError if names of columns look like a row: cells of other rows, or sentences."""
    names = list(filter(None, columns))
    repeated = [name for name in names if sum(row[name] == name for row in rows) > 1]
    odd = repeated if not all(map(is_name, names)) else []
    if odd or all(len(name.split()) >= _WORDS_OF_SENTENCE for name in names):
        raise UsageError(
            f"{path}: its first line looks like a row ({shortened((odd or names)[0])}); give "
            "--set finetune.header=no if it is one, or =yes if it names the columns"
        )


def sketch_columns(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> tuple[ColumnSketch, ...]:
    """Compute statistics of the columns of a table.

    Args:
        columns: names of the columns.
        rows: values by column, as in `TableBlock.rows`.
    """
    return tuple(_sketch(name, [row.get(name) for row in rows]) for name in columns)


def _sketch(name: str, values: list[Any]) -> ColumnSketch:
    filled = [value for value in values if value not in (None, "", [])]
    texts = [cell_text(value) for value in filled]
    count = max(len(filled), 1)
    kind, whole = _kind(filled, texts)
    different = set(texts)
    return ColumnSketch(
        name=name,
        kind=kind,
        rows=len(values),
        filled=len(filled),
        distinct=len(different),
        whole=whole,
        binary=bool(different) and {text.lower() for text in different} <= _TRUTHS,
        characters=sum(map(len, texts)) / count,
        words=sum(len(text.split()) for text in texts) / count,
        separator=_separator(texts) if kind == "text" else None,
        example=shortened(texts[0]) if texts else "",
    )


def _kind(filled: list[Any], texts: list[str]) -> tuple[ColumnKind, bool]:
    """Return the kind of a column's cells, and whether all are whole numbers.

    Args:
        filled: the cells that are not empty.
        texts: the same as texts.
    """
    if not filled:
        return "empty", False
    is_list = (
        all(isinstance(value, list) for value in filled)
        or all(text[0] in "[(" and list_in_text(text) is not None for text in texts)
        or lists_of_databases(texts) is not None
        or all(map(_are_labels, filled))
    )
    if is_list:
        return "list", False
    if any(isinstance(value, list | dict) for value in filled):
        return "object", False
    try:
        numbers = [float(text) for text in texts if text.lower() not in _NO_NUMBERS]
    except ValueError:
        return "text", False
    if not numbers or not all(map(math.isfinite, numbers)):
        return "text", False
    return "number", all(map(float.is_integer, numbers))


def _are_labels(value: Any) -> bool:
    """Whether a cell is an object with labels, or the text of one."""
    if isinstance(value, str) and value.startswith("{"):
        value = value_in_text(value)
    return labels_of_object(value) is not None


def _is_digits(piece: str) -> bool:
    return piece.isdecimal() or not piece


def _separator(texts: list[str]) -> str | None:
    """Return the separator of labels if cells are lists of labels; None if not.

    The pieces of such cells are short, and few of them differ: the same labels come again and
        again.
    """
    for separator in (*LABEL_SEPARATORS, " "):
        cells = [text.split(separator) for text in texts]
        several = sum(len(cell) > 1 for cell in cells)
        pieces = collections.Counter(piece.strip() for cell in cells for piece in cell)
        words = max(len(piece.split()) for piece in pieces)
        is_few = len(pieces) <= min(_MOST_LABELS, max(2, len(texts) // 2))
        if separator not in _USUAL_SEPARATORS:
            # Dates, N/A and names of two words: labels come in more combinations than there are.
            is_few = is_few and len(pieces) < len(set(texts)) and not all(map(_is_digits, pieces))
        if separator == " ":
            # Texts have blanks, too; but most labels are also cells of their own.
            is_few = is_few and 2 * len(pieces.keys() & set(texts)) >= len(pieces)
        if several >= _SEPARATED_CELLS * len(texts) and is_few and words <= _MOST_WORDS_OF_LABEL:
            return separator
    return None
