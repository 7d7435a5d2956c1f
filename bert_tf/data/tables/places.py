"""How a row is named wherever something is said of it: its line, its row in a spreadsheet, its id.

A line alone does not find a row. Cells with line ends make the number of a line another one than
that of the row in a spreadsheet, and neither survives sorting. So rows may have a name of their
own: the value of the id column, which `--id-column` names or which is found by its values.

`Places` goes with the rows from the reader to every message, list and page; nothing else may say
where a row is.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf.base.wording import shortened

ID = "id"  # of the fields and columns that hold ids
SHOWN_CHARACTERS = 60  # of an id in a message
# An id column without such a name is only taken from so many rows: in fewer, numbers of any kind
# may differ by chance.
_LEAST_ROWS = 8
_LONGEST_ID = 64  # characters; longer values are texts
_CODE = re.compile(rf"\S{{1,{_LONGEST_ID}}}")
_FRACTION = re.compile(r"[+-]?\d*[.,]\d+(e[+-]?\d+)?", re.IGNORECASE)
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
        """Return what names the row beside its line: `row 9, id 'T-17'`; "" for none."""
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
        """Return the fields that name rows in a list of them, [rows] by name.

        Args:
            lines: of the rows.

        Returns:
            `line`; `row`, if the file has rows with another number than their line; `id`, if there
            are ids, of which the text is empty where a row has none.
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
    """Return the column that names the rows, by its values in the first of them; None if none does.

    The values are all there, all different, and words or numbers without blanks. Of such columns
    the first whose name says that it identifies something is taken, else the first of all.

    Args:
        columns: in file order.
        rows: the first ones, values by column.
        used: columns that mean something else.
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
