"""Rows of CSV (RFC 4180) and TSV files; as in GLUE, TSV has no quotes, unless `is_quoted_tsv`.

A file is read in windows of records (`RecordStream`). All records of a window are checked at once:
whether they are rows, whether their bytes are UTF-8, and their cells as texts. Only rejects are
made one by one.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.console import Console
from bert_tf.base.kernels import take_ranges
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.csv_records import (
    FAULT_REASONS,
    RecordFault,
    Records,
    field_bytes,
)
from bert_tf.data.tables.formats.delimited_header import TableHeader, column_names, open_records
from bert_tf.data.tables.formats.record_stream import LongLine, decoded_texts, utf8_texts
from bert_tf.data.tables.rejects import (
    ESCAPED_QUOTE,
    HEADER_REPEATED,
    TOO_LONG,
    Reject,
    wrong_cells,
)
from bert_tf.data.tables.text_files import Opener, open_local

_ESCAPED_QUOTE = b'\\"'
_DELIMITER_NAMES = {";": "semicolons", "\t": "tabs", "|": "bars"}

# Line number; the row without its line end, "" for most rejects; and its cells, or the reject
ParsedRow = tuple[int, str, dict[str, Any] | Reject]


def read_delimited_rows(
    path: str | Path,
    dialect: TableDialect,
    *,
    has_quotes: bool,
    only: Collection[str] = (),
    console: Console | None = None,
    opener: Opener = open_local,
) -> Iterator[TableHeader | ParsedRow]:
    """Yield the header of a CSV or TSV file, then its rows; bad rows become rejects.

    Without a header, nothing says how many cells a row has. If only some columns are needed
    (`only`), the columns up to the last of these are read, and rows may have any number of further
    cells.

    Args:
        path: the file.
        dialect: encoding, whether there is a header, and limits.
        has_quotes: true for CSV. TSV may still turn out to be quoted.
        only: names of the needed columns; empty for all.
        console: gets notes on separators and quotes that are not the usual ones; None for none.
        opener: opens the file, which may be on other storage.

    Raises:
        NoRowsError: the file is empty.
        InputError: the header is too long, not text, not a CSV row, or lines end with CR; or the
            file is not text, or damaged.
        UsageError: the file cannot be opened.
    """
    with open_records(path, dialect, has_quotes=has_quotes, opener=opener) as (header, stream):
        if console is not None and has_quotes and header.delimiter != ",":
            named = _DELIMITER_NAMES.get(header.delimiter, repr(header.delimiter))
            console.info(f"{path}: columns are separated by {named}")
        if console is not None and header.has_quotes != has_quotes:
            console.info(f"{path}: cells are quoted, so it is read like CSV")
        if only and not dialect.has_header:
            header = _up_to(only, header)
        yield header
        reader = _RowReader(str(path), header, dialect)
        is_told = console is None or stream.has_quotes
        for window in stream.windows(header.delimiter):
            if console is not None and stream.has_quotes and not is_told:
                is_told = True
                console.info(f"{path}: later cells are quoted, so it is read like CSV")
            if isinstance(window, LongLine):
                yield window.line, "", too_long(path, window.line, dialect)
            else:
                yield from reader.rows(*window)


def _up_to(needed: Collection[str], header: TableHeader) -> TableHeader:
    """Narrow the columns, which are numbers, to those up to the last needed one."""
    if not set(needed).issubset(header.columns):
        return header  # the caller of the reader reports the missing one
    width = 1 + max(map(header.columns.index, needed))
    return dataclasses.replace(header, columns=header.columns[:width], may_have_more=True)


@dataclasses.dataclass(frozen=True)
class _RowReader:
    """Makes rows of records; `path` is the name of the file in rejects."""

    path: str
    header: TableHeader
    dialect: TableDialect

    def rows(self, data: np.ndarray, records: Records) -> Iterator[ParsedRow]:
        """Yield rows and rejects of a window of records, in file order.

        Args:
            data: uint8, bytes that hold the records.
            records: places of the records in `data`.
        """
        columns = self.header.columns
        is_row, is_blank = find_rows(records, self.header)
        raws = _raw_texts(data, records, is_row)
        if raws is None:  # at least one row is not text
            is_row &= are_utf8(data, records.starts, records.stops)
            raws = _raw_texts(data, records, is_row) or []
        fields = (records.offsets[:-1][is_row][:, None] + np.arange(len(columns))).ravel()
        copied, offsets = field_bytes(data, records, fields)
        cells = iter(decoded_texts(copied, offsets) or ())
        # One iterator, taken by all columns in turn: groups of consecutive cells
        rows = list(zip(*[cells] * len(columns), strict=True))
        lines = records.lines.tolist()
        may_have_notes = self.header.empty_columns > 0  # in columns without a name
        are_complete = bool((np.diff(records.offsets)[is_row] == self._cell_count).all())
        headers = self._headers(raws, rows)
        if is_row.all() and are_complete and not may_have_notes and not headers:
            for line, raw, row in zip(lines, raws, rows, strict=True):
                yield line, raw, dict(zip(columns, row, strict=True))
            return
        remaining = zip(itertools.count(), raws, rows, strict=False)
        for place in np.flatnonzero(~is_blank).tolist():
            line = lines[place]
            if not is_row[place]:
                broken = data[records.starts[place] : records.stops[place]].tobytes()
                reject = row_reject(self.path, broken, records, place, self.header, self.dialect)
                yield line, broken.decode("utf-8", "replace"), reject
                continue
            number, raw, row = next(remaining)
            if number in headers:
                yield line, "", Reject(self.path, line, HEADER_REPEATED)
                continue
            count = int(records.offsets[place + 1] - records.offsets[place])
            values = dict(zip(columns, row, strict=True))
            if count > len(columns) and not self.header.may_have_more:
                values.update(self._unnamed(data, records, place))
            yield line, self._filled(raw, count), values

    def _unnamed(self, data: np.ndarray, records: Records, place: int) -> dict[str, str]:
        """Return the filled cells of a row beyond the named columns, by a name made for each."""
        first = int(records.offsets[place]) + len(self.header.columns)
        fields = np.arange(first, int(records.offsets[place + 1]))
        copied, offsets = field_bytes(data, records, fields)
        cells = decoded_texts(copied, offsets) or ()
        names = column_names((*self.header.written, *[""] * len(fields)))
        named = zip(names[len(self.header.columns) :], cells, strict=False)
        return {name: cell for name, cell in named if cell}

    def _headers(self, raws: Sequence[str], rows: Sequence[tuple[str, ...]]) -> set[int]:
        """Find rows that repeat the header, aside from case, blanks and quotes around names.

        A text of a single column may be similar to its name: there, the line must be the same.
        """
        if self.header.raw is None:
            return set()
        if len(self.header.columns) == 1:
            return {number for number, raw in enumerate(raws) if raw == self.header.raw}
        names = list(map(_folded, self.header.written))
        return {
            number
            for number, row in enumerate(rows)
            if _folded(row[0]) == names[0] and list(map(_folded, row)) == names
        }

    @property
    def _cell_count(self) -> int:
        """Return the number of cells of a row, those of empty columns at the end included."""
        return len(self.header.columns) + self.header.empty_columns

    def _filled(self, raw: str, count: int) -> str:
        """Return a raw row with as many cells as the header has.

        Delimiters are added for missing cells of columns without names, and empty cells beyond are
        removed, so that a cell appended to the line falls into a new column.

        Args:
            raw: the row as in the file.
            count: number of its cells.
        """
        missing = self._cell_count - count
        if missing >= 0:
            return raw + self.header.delimiter * missing
        for _ in range(-missing):
            raw = raw.removesuffix('""').removesuffix(self.header.delimiter)
        return raw


def _raw_texts(data: np.ndarray, records: Records, chosen: np.ndarray) -> list[str] | None:
    """Return the texts of the chosen records, bool [records]; None if some are not UTF-8."""
    lengths = (records.stops - records.starts)[chosen]
    copied = take_ranges(data, records.starts[chosen], lengths)
    return decoded_texts(copied, offsets_of(lengths))


def _folded(cell: str) -> str:
    return cell.strip('\ufeff" \t').casefold()


def find_rows(records: Records, header: TableHeader) -> tuple[np.ndarray, np.ndarray]:
    """Find records that are rows, and records that count as blank lines.

    Columns at the end without a name may be filled: people type notes there. Cells beyond these
    must be empty. In tables with such columns, a row of only empty cells counts as a blank line.

    Returns:
        Whether each record is a row, and whether it counts as a blank line: bool [records] each.
    """
    counts = np.diff(records.offsets)
    filled = np.concatenate([[0], np.cumsum(records.field_stops > records.field_starts)])
    width = len(header.columns) + header.empty_columns
    expected_ends = np.minimum(records.offsets[:-1] + width, records.offsets[1:])
    is_sound = records.faults == RecordFault.SOUND
    has_more = filled[records.offsets[1:]] > filled[expected_ends]
    is_row = is_sound & (counts >= len(header.columns)) & (~has_more | header.may_have_more)
    is_blank = np.zeros(len(counts), np.bool_)
    if header.empty_columns:
        is_blank = is_sound & (filled[records.offsets[1:]] == filled[records.offsets[:-1]])
    return is_row & ~is_blank, is_blank


def row_reject(
    path: str,
    raw: bytes,
    records: Records,
    record: int,
    header: TableHeader,
    dialect: TableDialect,
) -> Reject:
    """Return the reject for a record that is not a row.

    Args:
        path: the file.
        raw: bytes of the record; of a broken record, those of its first line.
        records: records of a window.
        record: index of the record in the window.
        header: says how many cells a row has.
        dialect: of the file.
    """
    line = int(records.lines[record])
    fault = int(records.faults[record])
    if fault == RecordFault.LONG_RECORD:
        return too_long(path, line, dialect)
    is_escaped = header.has_quotes and _ESCAPED_QUOTE in raw
    if fault != RecordFault.SOUND:
        return Reject(path, line, ESCAPED_QUOTE if is_escaped else FAULT_REASONS[fault])
    columns = len(header.columns)
    more_columns = columns + header.empty_columns
    first, stop = records.offsets[record : record + 2].tolist()
    count = stop - first
    more = slice(first + more_columns, stop)
    if count < columns or (records.field_stops[more] > records.field_starts[more]).any():
        reason, detail = wrong_cells(count, columns, has_header=dialect.has_header)
        return Reject(path, line, ESCAPED_QUOTE if is_escaped else reason, detail)
    return Reject(path, line, dialect.invalid_text)


def are_utf8(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Whether rows are UTF-8 in all of their cells, needed or not.

    The meaning of bytes of another encoding is unknown, and such a row could not be written into a
    file of UTF-8. All bytes are checked at once; only if that fails, rows with bytes beyond ASCII
    are checked one by one.

    Args:
        data: uint8.
        starts: int64 [rows], first byte of each row.
        stops: int64 [rows], the byte after it.

    Returns:
        bool [rows].
    """
    if utf8_texts(data, np.array([0, len(data)])) is not None:
        return np.ones(len(starts), np.bool_)
    unusual = np.flatnonzero(data >= 0x80)
    firsts = np.searchsorted(unusual, starts)
    are_sound = firsts == np.searchsorted(unusual, stops)
    for row in np.flatnonzero(~are_sound).tolist():
        text = data[starts[row] : stops[row]]
        are_sound[row] = utf8_texts(text, np.array([0, len(text)])) is not None
    return are_sound


def too_long(path: str | Path, line: int, dialect: TableDialect) -> Reject:
    """Return the reject for a row of more characters than the dialect allows."""
    return Reject(str(path), line, TOO_LONG, f"more than {dialect.max_row_characters:,} characters")
