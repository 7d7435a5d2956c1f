"""Names of rows in messages, lists and pages: the line, the row in a spreadsheet, and the id.

The line is not enough to find a row. Line ends inside cells make the numbers of lines differ from
those of a spreadsheet's rows, and neither survives sorting. So rows may have a name of their own:
the value of the id column, which `--id-column` names or `likely_id_column` finds.

`Places` accompanies the rows from the reader to every message, list and page. It is the only source
of names of rows.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf.base.wording import shortened

ID = "id"  # of the fields and columns that hold ids
SHOWN_CHARACTERS = 60  # of an id in a message
# A table needs so many rows before a column without a name for ids is taken: in fewer rows, any
# numbers may all differ by chance.
_LEAST_ROWS = 8
_LONGEST_ID = 64  # characters; longer values are texts
_CODE = re.compile(rf"\S{{1,{_LONGEST_ID}}}")
_FRACTION = re.compile(r"[+-]?\d*[.,]\d+(e[+-]?\d+)?", re.IGNORECASE)
# Name of the column that pandas writes for the index of a table
_INDEX_OF_PANDAS = re.compile(r"Unnamed: \d+|")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ID_WORDS = frozenset(
    (
        *("id", "ids", "uid", "uuid", "guid", "key", "code", "ref", "reference", "ticket"),
        *("number", "no", "nr", "num", "index", "idx"),
    )
)


class Place(NamedTuple):
    """Where a row is in its file.

    Attributes:
        line: its first line, from 1; of Parquet the number of the row, 0 where there is neither.
        row: its number in a spreadsheet, the header being 1, where that is not the line; else 0.
        id: its own name; "" without one.
    """

    line: int
    row: int = 0
    id: str = ""

    @property
    def names(self) -> str:
        """Return the names of the row besides its line: `row 9, id 'T-17'`; "" for none."""
        row = f"row {self.row:,}" if self.row else ""
        name = f"id {shortened(self.id, SHOWN_CHARACTERS)}" if self.id else ""
        return ", ".join(filter(None, (row, name)))

    def __str__(self) -> str:
        """Write it behind `line ` or `file:`, as in `17 (row 9, id 'T-17')`."""
        return f"{self.line} ({self.names})" if self.names else f"{self.line}"


@dataclasses.dataclass(frozen=True)
class Places:
    """Names of rows besides their lines, for any selection of a file's rows.

    Attributes:
        row_of_line: the row of each line where these differ, see `Place.row`.
        id_of_line: the id of the row that begins on each line; empty without an id column.
    """

    row_of_line: dict[int, int] = dataclasses.field(default_factory=dict)
    id_of_line: dict[int, str] = dataclasses.field(default_factory=dict)

    def at(self, line: int) -> Place:
        """Return the place of the row that begins on a line."""
        return Place(line, self.row_of_line.get(line, 0), self.id_of_line.get(line, ""))

    def note(self, place: Place) -> None:
        """Add a row."""
        if place.row:
            self.row_of_line[place.line] = place.row
        if place.id:
            self.id_of_line[place.line] = place.id

    def update(self, other: Places) -> None:
        """Add the rows of another part of the file."""
        self.row_of_line.update(other.row_of_line)
        self.id_of_line.update(other.id_of_line)

    def columns(self, lines: Sequence[int]) -> dict[str, list[Any]]:
        """Return the fields that name rows in a list of rows: values [rows] by field.

        Args:
            lines: the line of each row.

        Returns:
            `line`; `row`, if some number of a row differs from its line; and `id`, if the file has
            ids, with "" for a row without one.
        """
        columns: dict[str, list[Any]] = {"line": list(lines)}
        if self.row_of_line:
            columns["row"] = [self.row_of_line.get(line, line) for line in lines]
        if self.id_of_line:
            columns[ID] = [self.id_of_line.get(line, "") for line in lines]
        return columns

    def fields(self, line: int) -> dict[str, Any]:
        """Return the fields of `columns` of a single row."""
        return {name: value for name, (value,) in self.columns([line]).items()}


def likely_id_column(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], used: Iterable[str]
) -> str | None:
    """Return the column that identifies the rows, judged by the first rows; None if none does.

    In such a column no value is missing, all differ, and all are words or numbers without blanks.
    The first column with a name for ids is taken, else the first with any name, else the index that
    pandas wrote.

    Args:
        columns: all columns in file order.
        rows: the first rows, values by column.
        used: columns with another meaning.
    """
    taken = set(used)
    id_columns = [name for name in columns if name not in taken and _are_ids(name, rows)]
    named = [name for name in id_columns if _is_id_name(name)]
    others = [name for name in id_columns if not _INDEX_OF_PANDAS.fullmatch(name)]
    if len(rows) < _LEAST_ROWS:
        others = id_columns = []
    return next(iter([*named, *others, *id_columns]), None)


def _are_ids(column: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    seen: set[str] = set()
    for row in rows:
        value = row.get(column)
        if isinstance(value, bool | float | list | dict):
            return False
        text = "" if value is None else str(value).strip()
        if text in seen or not _CODE.fullmatch(text) or _FRACTION.fullmatch(text):
            return False
        seen.add(text)
    return len(seen) > 1


def _is_id_name(name: str) -> bool:
    """Whether the first or last word of a name is one for ids: `id`, `ticketId`, `ORDER_NO`."""
    words = [word.lower() for word in _WORD.findall(name)]
    return bool(words) and not _ID_WORDS.isdisjoint((words[0], words[-1]))
