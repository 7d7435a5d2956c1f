"""The usable rows of a whole file, with their lines, places and rejects."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from bert_tf.base.errors import Fault, InputError, RowsRejected, UsageError
from bert_tf.base.wording import quantity
from bert_tf.data.tables.places import Place, Places
from bert_tf.data.tables.rejects import Reject, RejectTally, nothing_usable


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileRows:
    """The usable rows of a whole file.

    Attributes:
        noun: the word for a row in messages.
        row_fields: names of the fields with an item per row: lists, arrays, or dicts of them.
    """

    noun: ClassVar[str] = "row"
    row_fields: ClassVar[tuple[str, ...]] = ()

    source: str  # the file
    lines: list[int]  # the line each usable row starts on, counted from 1
    rejects: list[Reject]  # rows that cannot be used
    places: Places = dataclasses.field(default_factory=Places)  # row and id of each line

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, row: int) -> Place:
        """Return where a row is, given its number among the usable ones."""
        return self.places.at(self.lines[row])

    @property
    def all_places(self) -> list[Place]:
        """Return where each usable row is."""
        return [self.places.at(line) for line in self.lines]

    @property
    def place_columns(self) -> dict[str, list[Any]]:
        """Return the fields that name the usable rows in lists of rows, see `Places.columns`."""
        return self.places.columns(self.lines)

    def split(self, held_out: np.ndarray) -> tuple[Self, Self]:
        """Split off rows; all rejects stay with the first part.

        Args:
            held_out: bool [rows], True for rows of the second part.
        """
        first = self.selected(np.flatnonzero(~held_out), self.rejects)
        second = self.selected(np.flatnonzero(held_out), [])
        return first, second

    def selected(self, rows: np.ndarray, rejects: list[Reject]) -> Self:
        """Return the rows with these indices, int [n], together with the given rejects."""
        fields = ("lines", *self.row_fields)
        items = {name: _items(getattr(self, name), rows) for name in fields}
        return dataclasses.replace(self, **items, rejects=rejects)

    def rejecting(self, faults: Mapping[int, Fault], *, advice: str = "") -> Self:
        """Move usable rows to the rejects.

        Args:
            faults: reason and detail by index of the row.
            advice: advice for the message if no row is left.

        Raises:
            RowsRejected: no row is left.
        """
        if not faults:
            return self
        new = [Reject.at(self.source, self.place(row), *fault) for row, fault in faults.items()]
        rejects = [*self.rejects, *new]
        if len(faults) == len(self):
            rejects.sort(key=lambda reject: reject.line)
            raise nothing_usable(self.source, rejects, noun=self.noun, advice=advice)
        return self.selected(np.delete(np.arange(len(self)), list(faults)), rejects)

    @contextmanager
    def reasons_first(self) -> Iterator[None]:
        """Begin errors about the usable rows with the reasons why other rows were rejected.

        An `InputError` becomes RowsRejected if there are rejects; a UsageError stays one.
        """
        try:
            yield
        except (InputError, UsageError) as error:
            if not self.rejects or isinstance(error, RowsRejected):
                raise
            total = quantity(len(self) + len(self.rejects), "row")
            tally = RejectTally(self.rejects)
            reasons = (tally.brief(), tally.summaries()[0].remedy, "of the rest")
            message = str(error).removeprefix(f"{self.source}: ")
            line = (
                f"{self.source}: {len(self.rejects):,} of {total} rejected: "
                f"{'; '.join(filter(None, reasons))}: {message}"
            )
            if isinstance(error, UsageError):
                raise UsageError(line) from error
            raise RowsRejected(line, self.rejects) from error


def _items(values: Any, rows: np.ndarray) -> Any:
    """Select items of a row field: a list, an array, a dict of these, or None."""
    if values is None:
        return None
    if isinstance(values, dict):
        return {name: _items(items, rows) for name, items in values.items()}
    if isinstance(values, list):
        return [values[row] for row in rows.tolist()]
    return values[rows]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table(FileRows):
    """The needed columns of a whole file, as texts."""

    row_fields: ClassVar[tuple[str, ...]] = ("columns",)

    columns: dict[str, list[str]]  # texts of the usable rows by column name
