"""Corrected labels of training rows: written by `label-errors`, edited, applied by `finetune`.

A correction names its row by its id, or by its line in the training file if rows have none, and by
the label that it has there, so that corrections of another file, or of a later version of it, are
not applied to other rows.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.base.files import replacing_file
from bert_tf.base.wording import quantity
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.tables.places import ID, Place, Places

CORRECTIONS = "corrections.csv"
_NEEDED = ("line", "label", "corrected_label")


class Correction(NamedTuple):
    """A corrected row.

    Attributes:
        place: place of the correction in its own file.
        of: place of the row in the training file.
        label: the row's label there.
        corrected: the right label; "" keeps the label.
    """

    place: Place
    of: Place
    label: str
    corrected: str


@contextlib.contextmanager
def open_rows(path: str | Path) -> Iterator[csv.DictReader]:
    """Open a CSV file of `label-errors`, whose cells may hold whole texts.

    Reading raises csv.Error, or UnicodeDecodeError where the file is not UTF-8.
    """
    csv.field_size_limit(sys.maxsize)
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        yield csv.DictReader(stream)


def read_corrections(path: str) -> list[Correction]:
    """Read a file of corrections.

    Raises:
        InputError: a column is missing, a line is no number, or it is no CSV in UTF-8.
    """
    try:
        with open_rows(path) as rows:
            missing = [name for name in _NEEDED if name not in (rows.fieldnames or ())]
            if missing:
                raise InputError(
                    f"{path}: has no column {missing[0]!r}; expected a {CORRECTIONS} of "
                    "label-errors"
                )
            return list(_corrections(path, rows))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not CSV in UTF-8 ({error}); save it as CSV UTF-8") from None


def _corrections(path: str, rows: csv.DictReader) -> Iterator[Correction]:
    """Yield the rows of an open file; raise InputError for a line that is no number."""
    # The reader knows the last line of a row; the first one follows that of the row before.
    last = rows.line_num
    for number, row in enumerate(rows, start=2):
        first = last + 1
        last = rows.line_num
        place = Place(first, 0 if number == first else number)
        if not (row["line"] or "").isdecimal():
            raise InputError(f"{path}:{place}: line {row['line']!r} is not a number from 1")
        number_of_row = row.get("row") or ""
        of = Place(
            int(row["line"]),
            int(number_of_row) if number_of_row.isdecimal() else 0,
            (row.get(ID) or "").strip(),
        )
        label = (row["label"] or "").strip()
        corrected = (row["corrected_label"] or "").strip()
        yield Correction(place, of, label, corrected)


def corrected_table(table: Table, path: str, column: str, console: Console) -> Table:
    """Apply corrections to the labels of training rows, and say how many.

    Args:
        table: the usable training rows.
        path: file of corrections.
        column: column of the label.
        console: says how many labels change.

    Raises:
        InputError: a correction is of a row that is not there, or has another label.
    """
    find = _finder(table)
    labels = list(table.columns[column])
    changed = 0
    kept = 0
    for correction in read_corrections(path):
        row = find(correction.of)
        if row is None or labels[row] not in (correction.label, correction.corrected):
            present = "no usable row" if row is None else f"the label {labels[row]!r}"
            raise InputError(
                f"{path}:{correction.place}: is of a row with the label {correction.label!r} at "
                f"line {correction.of} of {table.source}, where there is {present}; run "
                "label-errors again if the training rows have changed"
            )
        if correction.corrected in ("", labels[row]):
            kept += 1
        else:
            changed += 1
            labels[row] = correction.corrected
    unchanged = f", {kept:,} left as they are" if kept else ""
    console.info(f"{path}: {quantity(changed, 'label')} corrected{unchanged}")
    return dataclasses.replace(table, columns={**table.columns, column: labels})


def _finder(table: Table) -> Callable[[Place], int | None]:
    """Return a function that finds a row, by its id if rows have one each, else by its line."""
    at_line = {line: row for row, line in enumerate(table.lines)}
    ids = [place.id for place in table.all_places]
    at_id = {name: row for row, name in enumerate(ids) if name}
    if len(at_id) < sum(map(bool, ids)):  # several rows have one
        at_id = {}

    def find(place: Place) -> int | None:
        if place.id and at_id:
            return at_id.get(place.id)
        return at_line.get(place.line)

    return find


def write_corrections(path: Path, rows: Sequence[Correction], texts: Sequence[str]) -> None:
    """Write corrections for the user to edit, with the place and the text of each row."""
    places = Places()
    for row in rows:
        places.note(row.of)
    place_columns = places.columns([row.of.line for row in rows])
    with replacing_file(path) as aside, aside.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*place_columns, "label", "corrected_label", "text"])
        for *place, row, text in zip(*place_columns.values(), rows, texts, strict=True):
            writer.writerow([*place, row.label, row.corrected, text])
