"""Rows of CSV (RFC 4180) and TSV files, with their line numbers; bad rows do not end the reading.

A quoted cell may hold delimiters, line ends and doubled quotes. A quote that is never closed does
not swallow the rest of the file: only the line its record begins on is rejected, and reading
continues at the next line (`csv_records.py`).

TSV follows GLUE: no quoting, a quote is a character like any other.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.base.arrays import offsets_of
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, NoRowsError
from bert_tf.base.kernels import take_ranges
from bert_tf.data.tables.dialect import TableDialect, numbered_columns
from bert_tf.data.tables.file_encoding import encoding_advice
from bert_tf.data.tables.formats.csv_records import (
    FAULT_REASONS,
    LONG_RECORD,
    SOUND,
    Records,
    field_bytes,
)
from bert_tf.data.tables.formats.delimiter import find_delimiter, first_cells
from bert_tf.data.tables.formats.record_stream import LongLine, RecordStream
from bert_tf.data.tables.reasons import TOO_LONG, wrong_cells
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.text_files import Opener, has_surrogates, open_local, open_utf8

_DELIMITER_NAMES = {";": "semicolons", "\t": "tabs"}

ParsedRow = tuple[int, str, dict[str, Any] | Reject]
"""Line number, the row without its line end (empty if rejected), and cells or a reject."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableHeader:
    """How a delimited file names and separates its columns.

    Attributes:
        columns: the names in file order; numbers from 1 where there is no header.
        raw: the header as in the file, without byte-order mark and line end; None where
            there is no header.
        delimiter: what separates two cells.
        has_mark: whether the file begins with a byte-order mark.
    """

    columns: tuple[str, ...]
    raw: str | None
    delimiter: str
    has_mark: bool


def read_csv_rows(
    path: str | Path,
    dialect: TableDialect,
    *,
    console: Console | None,
    opener: Opener = open_local,
) -> Iterator[TableHeader | ParsedRow]:
    """Yields the header of a CSV file, then its rows.

    Another delimiter than the comma (`find_delimiter`) is logged.

    Raises:
        InputError: no header, two columns of one name, a header that is not text.
        UsageError: the file cannot be read.
    """
    return _read_rows(path, dialect, has_quotes=True, console=console, opener=opener)


def read_tsv_rows(
    path: str | Path, dialect: TableDialect, opener: Opener = open_local
) -> Iterator[TableHeader | ParsedRow]:
    """Yields the header of a TSV file, then its rows; quotes mean nothing.

    Raises:
        InputError: no header, two columns of one name, a header that is not text.
        UsageError: the file cannot be read.
    """
    return _read_rows(path, dialect, has_quotes=False, console=None, opener=opener)


def _read_rows(
    path: str | Path,
    dialect: TableDialect,
    *,
    has_quotes: bool,
    console: Console | None,
    opener: Opener,
) -> Iterator[TableHeader | ParsedRow]:
    with _open_records(path, dialect, has_quotes=has_quotes, opener=opener) as (header, stream):
        if header.delimiter != "," and console is not None:
            console.info(f"{path}: columns are separated by {_DELIMITER_NAMES[header.delimiter]}")
        yield header
        reader = _RowReader(str(path), header, dialect)
        for found in stream.windows(header.delimiter):
            if isinstance(found, LongLine):
                yield found.line, "", too_long(path, found.line, dialect)
            else:
                yield from reader.rows(*found)


def read_table_header(
    path: str | Path, dialect: TableDialect, *, has_quotes: bool, opener: Opener = open_local
) -> TableHeader:
    """The header of a CSV (with quotes) or TSV file.

    Raises:
        InputError, UsageError: as `read_csv_rows`.
    """
    with _open_records(path, dialect, has_quotes=has_quotes, opener=opener) as (header, _):
        return header


@contextmanager
def _open_records(
    path: str | Path, dialect: TableDialect, *, has_quotes: bool, opener: Opener
) -> Iterator[tuple[TableHeader, RecordStream]]:
    """The header of a file, and the records after it."""
    with open_utf8(path, encoding=dialect.encoding, opener=opener) as file:
        longest = dialect.max_row_characters
        stream = RecordStream(file.read, has_quotes=has_quotes, longest=longest)
        delimiter = "\t"
        if has_quotes:
            delimiter = find_delimiter(
                stream.peek(),
                has_header=dialect.has_header,
                longest=longest,
                is_end=stream.is_end,
            )
        yield _read_header(path, stream, delimiter, dialect, has_mark=file.has_mark), stream


def _read_header(
    path: str | Path,
    stream: RecordStream,
    delimiter: str,
    dialect: TableDialect,
    *,
    has_mark: bool,
) -> TableHeader:
    found = stream.first(delimiter)
    if found is None:
        raise _empty(path, dialect)
    if isinstance(found, LongLine):
        raise _no_header(path, found.line, dialect)
    data, records = found
    line, fault = int(records.lines[0]), int(records.faults[0])
    if fault == LONG_RECORD:
        raise _no_header(path, line, dialect)
    if fault != SOUND:
        what = "header" if dialect.has_header else "first row"
        raise InputError(
            f"{path}:{line}: the {what} is not a CSV row ({FAULT_REASONS[fault]}); "
            "correct its quotes"
        )
    cells = first_cells(data, records)
    raw = None
    if dialect.has_header:
        check_header(path, line, cells, dialect)
        raw = data[records.starts[0] : records.stops[0]].tobytes().decode("utf-8")
        stream.skip(records)
    return TableHeader(
        columns=tuple(cells) if dialect.has_header else numbered_columns(len(cells)),
        raw=raw,
        delimiter=delimiter,
        has_mark=has_mark,
    )


@dataclasses.dataclass(frozen=True)
class _RowReader:
    """Makes rows of records."""

    path: str
    header: TableHeader
    dialect: TableDialect

    def rows(self, data: np.ndarray, records: Records) -> Iterator[ParsedRow]:
        """The rows and rejects of some records, in their order."""
        columns = self.header.columns
        counts = np.diff(records.offsets)
        is_row = (records.faults == SOUND) & (counts == len(columns))
        starts, lengths = records.starts, records.stops - records.starts
        raws = _strings(take_ranges(data, starts[is_row], lengths[is_row]), lengths[is_row])
        if raws is None:  # at least one row is not text
            is_row &= are_utf8(data, starts, records.stops)
            raws = _strings(take_ranges(data, starts[is_row], lengths[is_row]), lengths[is_row])
        fields = (records.offsets[:-1][is_row][:, None] + np.arange(len(columns))).ravel()
        copied, offsets = field_bytes(data, records, fields)
        cells = iter(_strings(copied, np.diff(offsets)) or ())
        rows = zip(*[cells] * len(columns), strict=True)
        lines = records.lines.tolist()
        if is_row.all():
            for line, raw, row in zip(lines, raws or (), rows, strict=True):
                yield line, raw, dict(zip(columns, row, strict=True))
            return
        remaining = iter(raws or ())
        for place, line in enumerate(lines):
            if is_row[place]:
                yield line, next(remaining), dict(zip(columns, next(rows), strict=True))
            else:
                yield line, "", row_reject(self.path, records, place, len(columns), self.dialect)


def row_reject(
    path: str, records: Records, record: int, columns: int, dialect: TableDialect
) -> Reject:
    """The reject for a record that is no row.

    Args:
        path: the file.
        records: some of its records.
        record: which of them.
        columns: cells that a row has.
        dialect: of the file.
    """
    line, fault = int(records.lines[record]), int(records.faults[record])
    if fault == LONG_RECORD:
        return too_long(path, line, dialect)
    if fault != SOUND:
        return Reject(path, line, FAULT_REASONS[fault])
    count = int(records.offsets[record + 1] - records.offsets[record])
    if count != columns:
        return Reject(path, line, *wrong_cells(count, columns, has_header=dialect.has_header))
    return Reject(path, line, dialect.invalid_text)


def are_utf8(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Whether each of some rows is UTF-8, in all its cells.

    A cell of another encoding rejects the row, whichever columns are needed: what the other bytes
    of that row mean is not known, and it could not be written into a file of UTF-8.

    Args:
        data: uint8.
        starts: int64 [rows].
        stops: int64 [rows], where characters end.

    Returns:
        bool [rows].
    """
    if _valid_texts(data, np.array([0, len(data)])) is not None:
        return np.ones(len(starts), np.bool_)
    unusual = np.flatnonzero(data >= 0x80)
    firsts = np.searchsorted(unusual, starts)
    are_sound = firsts == np.searchsorted(unusual, stops)
    for row in np.flatnonzero(~are_sound).tolist():
        are_sound[row] = _is_utf8(data, starts[row], stops[row])
    return are_sound


def _strings(data: np.ndarray, lengths: np.ndarray) -> list[str] | None:
    """UTF-8 texts that follow one another; None if they are not UTF-8."""
    texts = _valid_texts(data, offsets_of(lengths))
    return None if texts is None else list(texts.to_numpy(zero_copy_only=False).tolist())


def _valid_texts(data: np.ndarray, offsets: np.ndarray) -> pa.LargeStringArray | None:
    buffers = pa.py_buffer(offsets), pa.py_buffer(data)
    texts = pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return texts


def _is_utf8(data: np.ndarray, start: int, stop: int) -> bool:
    try:
        data[start:stop].tobytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def check_header(
    path: str | Path, line: int, columns: Sequence[str], dialect: TableDialect
) -> None:
    """Refuses a header that cannot name its columns.

    Raises:
        InputError: a name appears twice, or the header is not text.
    """
    joined = "".join(columns)
    if has_surrogates(joined) or "\0" in joined:
        raise InputError(
            f"{path}:{line}: the header is {dialect.invalid_text}; {encoding_advice(str(path))}"
        )
    twice = [name for name, count in collections.Counter(columns).items() if count > 1]
    if twice:
        raise InputError(
            f"{path}:{line}: column {twice[0]!r} appears twice; rename or remove one of the "
            "two, or give --no-header if this line is a row"
        )


def _empty(path: str | Path, dialect: TableDialect) -> NoRowsError:
    expected = "a line with the names of the columns" if dialect.has_header else "rows"
    return NoRowsError(f"{path}: is empty; expected {expected}")


def too_long(path: str | Path, line: int, dialect: TableDialect) -> Reject:
    """The reject for a row of more characters than allowed."""
    return Reject(str(path), line, TOO_LONG, f"more than {dialect.max_row_characters:,} characters")


def _no_header(path: str | Path, line: int, dialect: TableDialect) -> InputError:
    return InputError(
        f"{path}:{line}: the first line has more than {dialect.max_row_characters:,} characters; "
        "correct the line ends of the file, or raise max_row_characters"
    )
