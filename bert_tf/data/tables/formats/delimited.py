"""Rows of CSV (RFC 4180) and TSV files; as in GLUE, TSV has no quotes, unless `is_quoted_tsv`.

A file is read in windows of records (`RecordStream`). Which records of a window are rows, whether
their bytes are UTF-8, and their cells as texts are found for all of them at once; only rejects are
made one by one.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.base.arrays import offsets_of
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, NoRowsError
from bert_tf.base.kernels import take_ranges
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.csv_records import (
    FAULT_REASONS,
    RecordFault,
    Records,
    field_bytes,
    find_records,
)
from bert_tf.data.tables.formats.record_stream import (
    LongLine,
    RecordStream,
    find_delimiter,
    first_cells,
    is_quoted_tsv,
    named_delimiter,
)
from bert_tf.data.tables.rejects import (
    ESCAPED_QUOTE,
    HEADER_REPEATED,
    REMEDIES,
    TOO_LONG,
    Reject,
    wrong_cells,
)
from bert_tf.data.tables.text_files import (
    Opener,
    encoding_advice,
    has_surrogates,
    open_local,
    open_utf8,
)

_SPACED_QUOTES = re.compile(r'\s+".*"\s*')
_SEPARATED_BY_BLANKS = re.compile(r'"[^"]*"(?: +"[^"]*")+')
_SEARCHED_BYTES = 1 << 20  # at once
_OPENING_QUOTE = re.compile(rb'(?:^|[\t\n])"')
_ESCAPED_QUOTE = b'\\"'
_ROWS_WITH_NAMES = 20  # that are looked at
_LEAST_ROWS_WITH_NAMES = 2  # a single row may have a comma in its text
_LEAST_COUNTED_ROWS = 3  # without quotes, where numbers from 1 may be a column of their own
_NUMBERS_ROWS = re.compile(r"#|(.*[\W_])?(id|ids|idx|index|key|line|no|nr|num|number|row)", re.I)
_LONGEST_FIRST_ROW = 1 << 20  # characters; a longer one has no name
_DELIMITER_NAMES = {";": "semicolons", "\t": "tabs", "|": "bars"}

# Line number, the row without its line end (empty of most rejects), and cells or a reject
ParsedRow = tuple[int, str, dict[str, Any] | Reject]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableHeader:
    """How a delimited file names and separates its columns."""

    # in file order, without empty ones at the end, each name once (`column_names`); or numbers
    # from 1
    columns: tuple[str, ...]
    raw: str | None  # as in the file, without mark and line end; None without a header
    delimiter: str  # what separates two cells
    has_mark: bool  # whether the file begins with a byte-order mark
    has_quotes: bool = True  # whether cells may be quoted
    empty_columns: int = 0  # how many empty names there are at the end
    may_have_more: bool = False  # whether rows may have cells beyond the columns
    line: int = 0  # of the header; without one of the line before the rows
    written: tuple[str, ...] = ()  # the names as in the file; () without a header

    @property
    def repeated(self) -> set[str]:
        """Return the names that several columns have, of which no one can be meant."""
        return {name for name, count in collections.Counter(self.written).items() if count > 1}


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

    Without a header, nothing says how many cells a row has: if `only` some columns are needed,
    those up to the last of them are read, and rows may have any more.

    Args:
        path: the file.
        dialect: encoding, whether there is a header, and limits.
        has_quotes: true for CSV. TSV may still turn out to be quoted.
        only: names of the needed columns; empty for all.
        console: gets notes on separators and quotes that are not the usual ones; None for none.
        opener: opens the file, which may be on other storage.

    Raises:
        NoRowsError: the file is empty.
        InputError: the header is too long, not text, no CSV row, or has a name twice; or the file
            is not text, or damaged.
        UsageError: the file cannot be opened.
    """
    with _open_records(path, dialect, has_quotes=has_quotes, opener=opener) as (header, stream):
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
    width = max(header.columns.index(name) + 1 if name in header.columns else 0 for name in needed)
    if not set(needed).issubset(header.columns):
        return header  # its reader says which one is missing
    return dataclasses.replace(header, columns=header.columns[:width], may_have_more=True)


def read_table_header(
    path: str | Path, dialect: TableDialect, *, has_quotes: bool, opener: Opener = open_local
) -> TableHeader:
    """Read the header of a CSV (with quotes) or TSV file; errors as of `read_delimited_rows`."""
    with _open_records(path, dialect, has_quotes=has_quotes, opener=opener) as (header, _):
        return header


def is_quoted_later(
    path: str | Path, dialect: TableDialect, *, opener: Opener = open_local
) -> bool:
    """Whether the first cell of a TSV file that begins with a quote is quoted, wherever it is.

    Rows before it are the same in both readings. Errors are those of `read_delimited_rows`.
    """
    with open_utf8(path, encoding=dialect.encoding, opener=opener) as file:
        before = b""  # the last byte of the part before
        while part := file.read(_SEARCHED_BYTES):
            if _OPENING_QUOTE.search(before + part):
                break
            before = part[-1:]
        else:
            return False
    with _open_records(path, dialect, has_quotes=False, opener=opener) as (header, stream):
        for _ in stream.windows(header.delimiter):
            if not stream.settles_quotes:
                break
        return stream.has_quotes


@contextmanager
def _open_records(
    path: str | Path, dialect: TableDialect, *, has_quotes: bool, opener: Opener
) -> Iterator[tuple[TableHeader, RecordStream]]:
    """Open a file; yield its header, and the stream of the records after it."""
    with open_utf8(path, encoding=dialect.encoding, opener=opener) as file:
        longest = dialect.max_row_characters
        stream = RecordStream(file.read, has_quotes=has_quotes, longest=longest)
        sample = stream.peek()
        delimiter = "\t"
        if not has_quotes:
            stream.has_quotes = is_quoted_tsv(sample, longest=longest, is_end=stream.is_end)
            stream.settles_quotes = _OPENING_QUOTE.search(sample.tobytes()) is None
        elif (named := named_delimiter(sample)) is not None:
            delimiter = named
            stream.first(delimiter, is_skipped=True)
        else:
            delimiter = find_delimiter(
                sample, has_header=dialect.has_header, longest=longest, is_end=stream.is_end
            )
        yield _read_header(path, stream, delimiter, dialect, has_mark=file.has_mark), stream


def _read_header(
    path: str | Path, stream: RecordStream, delimiter: str, dialect: TableDialect, *, has_mark: bool
) -> TableHeader:
    """Read the first record: as names of columns, or only to count them if there is no header."""
    first_record = stream.first(delimiter)
    if first_record is None:
        expected = "a line with the names of the columns" if dialect.has_header else "rows"
        raise NoRowsError(f"{path}: is empty; expected {expected}")
    if isinstance(first_record, LongLine) or first_record[1].faults[0] == RecordFault.LONG_RECORD:
        line = first_record.line if isinstance(first_record, LongLine) else first_record[1].lines[0]
        raise InputError(
            f"{path}:{line}: the first line has more than {dialect.max_row_characters:,} "
            f"characters; {REMEDIES[TOO_LONG]}"
        )
    data, records = first_record
    line, fault = int(records.lines[0]), int(records.faults[0])
    if fault != RecordFault.SOUND:
        what = "header" if dialect.has_header else "first row"
        first = data[records.starts[0] : records.stops[0]].tobytes().decode("utf-8", "replace")
        if _SEPARATED_BY_BLANKS.fullmatch(first.strip()):
            raise InputError(
                f"{path}:{line}: blanks separate the columns, as R's write.table writes them; "
                "write commas (sep = ',') in .csv, or tabs (sep = '\\t') in .tsv"
            )
        raise InputError(
            f"{path}:{line}: the {what} is not a CSV row ({FAULT_REASONS[fault]}); "
            "correct its quotes"
        )
    cells = first_cells(data, records)
    spaced = next(filter(_SPACED_QUOTES.fullmatch, cells), None) if stream.has_quotes else None
    if spaced:
        raise InputError(
            f"{path}:{line}: blanks before the quotes of {spaced!r} make them part of the cells; "
            f"remove the blanks after {delimiter!r}"
        )
    written: tuple[str, ...] = ()
    raw = None
    columns = tuple(map(str, range(1, len(cells) + 1)))
    if dialect.has_header:
        if _has_row_names(data, records, stream, delimiter):
            cells = ["", *cells]
        named = len(cells)
        while named > 1 and not cells[named - 1].strip():
            named -= 1
        written = tuple(cells[:named])
        check_header(path, line, written, dialect)
        columns = column_names(written)
        raw = data[records.starts[0] : records.stops[0]].tobytes().decode("utf-8")
        stream.skip(records)
    return TableHeader(
        columns=columns,
        raw=raw,
        delimiter=delimiter,
        has_mark=has_mark,
        has_quotes=stream.has_quotes,
        empty_columns=len(cells) - len(columns),
        line=line if dialect.has_header else line - 1,
        written=written,
    )


def _has_row_names(data: np.ndarray, header: Records, stream: RecordStream, delimiter: str) -> bool:
    """Whether rows have one cell more than the header, as R's `write.table` writes their names.

    R quotes all names, of columns and rows, or none. Quoted names of rows must differ; names
    without quotes must count from 1. All else is rows with a separator too many, which are rejects:
    a last cell is empty, a blank follows a separator, or the numbers are those of a column `id`.

    Args:
        data: uint8, bytes that hold the header.
        header: the header, a single record.
        stream: of the file, at the header.
        delimiter: between cells.
    """
    records = find_records(
        data,
        delimiter=ord(delimiter),
        has_quotes=stream.has_quotes,
        start=header.end,
        longest=_LONGEST_FIRST_ROW,
        most_records=_ROWS_WITH_NAMES,
        is_end=stream.is_end,
    )
    width = int(header.offsets[1])
    counts = np.diff(records.offsets)
    if (
        len(counts) < _LEAST_ROWS_WITH_NAMES
        or (counts != width + 1).any()
        or (records.faults != RecordFault.SOUND).any()
    ):
        return False
    is_quoted = _are_quoted(data, records, stream)
    is_empty = records.field_stops == records.field_starts
    last = records.offsets[1:] - 1
    if (is_empty & ~is_quoted)[last].any() or is_empty[last].all():
        return False
    firsts = records.offsets[:-1]
    copied, offsets = field_bytes(data, records, firsts)
    names = _strings(copied, np.diff(offsets))
    if names is None or len({*names}) < len(names):
        return False
    are_counted = names == [str(number) for number in range(1, len(names) + 1)]
    numbers_rows = _NUMBERS_ROWS.fullmatch(first_cells(data, header)[0].strip()) is not None
    header_quoted = _are_quoted(data, header, stream)[:width]
    if header_quoted.all() and is_quoted[firsts].all():
        # Numbers of a column beside them are without quotes.
        return not (are_counted and numbers_rows and is_quoted[firsts + 1].all())
    if header_quoted.any() or is_quoted.any() or numbers_rows or not are_counted:
        return False
    has_blank = ~is_empty & (data[np.minimum(records.field_starts, len(data) - 1)] == ord(" "))
    return len(names) >= _LEAST_COUNTED_ROWS and not has_blank.any()


def _are_quoted(data: np.ndarray, records: Records, stream: RecordStream) -> np.ndarray:
    """Return whether each field is in quotes: bool [fields]."""
    starts = records.field_starts
    return stream.has_quotes & (starts > 0) & (data[starts - 1] == ord('"'))


@dataclasses.dataclass(frozen=True)
class _RowReader:
    """Makes rows of records; `path` is the file that rejects name."""

    path: str
    header: TableHeader
    dialect: TableDialect

    def rows(self, data: np.ndarray, records: Records) -> Iterator[ParsedRow]:
        """Yield rows and rejects of a window of records, in file order.

        Args:
            data: uint8, bytes that hold the records.
            records: where they are in `data`.
        """
        columns = self.header.columns
        is_row, is_blank = find_rows(records, self.header)
        starts, lengths = records.starts, records.stops - records.starts
        raws = _strings(take_ranges(data, starts[is_row], lengths[is_row]), lengths[is_row])
        if raws is None:  # at least one row is not text
            is_row &= are_utf8(data, starts, records.stops)
            raws = _strings(take_ranges(data, starts[is_row], lengths[is_row]), lengths[is_row])
        fields = (records.offsets[:-1][is_row][:, None] + np.arange(len(columns))).ravel()
        copied, offsets = field_bytes(data, records, fields)
        cells = iter(_strings(copied, np.diff(offsets)) or ())
        rows = list(zip(*[cells] * len(columns), strict=True))
        lines = records.lines.tolist()
        raws = raws or []
        has_notes = self.header.empty_columns > 0  # it may have
        is_plain = not has_notes and not (np.diff(records.offsets)[is_row] != self._cells).any()
        headers = self._headers(raws, rows)
        if is_row.all() and is_plain and not headers:
            for line, raw, row in zip(lines, raws, rows, strict=True):
                yield line, raw, dict(zip(columns, row, strict=True))
            return
        remaining = zip(itertools.count(), raws, rows, strict=False)
        for place in np.flatnonzero(~is_blank).tolist():
            line = lines[place]
            if not is_row[place]:
                broken = data[starts[place] : records.stops[place]].tobytes()
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
        """Return the cells of a row under empty names at the end, those with content, by name."""
        first = int(records.offsets[place]) + len(self.header.columns)
        fields = np.arange(first, int(records.offsets[place + 1]))
        copied, offsets = field_bytes(data, records, fields)
        cells = _strings(copied, np.diff(offsets)) or ()
        names = column_names((*self.header.written, *[""] * len(fields)))
        return {
            name: cell
            for name, cell in zip(names[len(self.header.columns) :], cells, strict=False)
            if cell
        }

    def _headers(self, raws: Sequence[str], rows: Sequence[tuple[str, ...]]) -> set[int]:
        """Find rows that repeat the header; in a single column, which may hold it, equal lines."""
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
    def _cells(self) -> int:
        """Return the number of cells of a row, those of empty columns at the end included."""
        return len(self.header.columns) + self.header.empty_columns

    def _filled(self, raw: str, count: int) -> str:
        """Return a raw row with as many cells as the header has.

        Delimiters are added for missing cells of columns without names, and empty cells beyond are
        removed, so that a column that is added to the line stands in its place.

        Args:
            raw: the row as in the file.
            count: its cells.
        """
        missing = self._cells - count
        if missing >= 0:
            return raw + self.header.delimiter * missing
        for _ in range(-missing):
            raw = raw.removesuffix('""').removesuffix(self.header.delimiter)
        return raw


def _folded(cell: str) -> str:
    return cell.strip('\ufeff" \t').casefold()


def find_rows(records: Records, header: TableHeader) -> tuple[np.ndarray, np.ndarray]:
    """Find records that are rows, and those that count as blank lines.

    Cells beyond the columns must be empty, those without a name at the end counted among them,
    where people type notes; in tables that have such columns rows of only empty cells are blank.

    Returns:
        Two arrays, bool [records].
    """
    counts = np.diff(records.offsets)
    filled = np.concatenate([[0], np.cumsum(records.field_stops > records.field_starts)])
    width = len(header.columns) + header.empty_columns
    named = np.minimum(records.offsets[:-1] + width, records.offsets[1:])
    is_sound = records.faults == RecordFault.SOUND
    has_more = filled[records.offsets[1:]] > filled[named]
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
    """Return the reject for a record that is no row.

    Args:
        path: the file.
        raw: bytes of the record, of a broken one those of its first line.
        records: records of a window.
        record: index of the one that is no row.
        header: says how many cells a row has.
        dialect: of the file.
    """
    line, fault = int(records.lines[record]), int(records.faults[record])
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

    What the bytes of another encoding mean is not known, and such a row could not be written into a
    file of UTF-8. All bytes are checked at once; only if that fails, rows with bytes beyond ASCII
    are checked one by one.

    Args:
        data: uint8.
        starts: int64 [rows], first byte of each row.
        stops: int64 [rows], the byte after it.

    Returns:
        bool [rows].
    """
    if _valid_texts(data, np.array([0, len(data)])) is not None:
        return np.ones(len(starts), np.bool_)
    unusual = np.flatnonzero(data >= 0x80)
    firsts = np.searchsorted(unusual, starts)
    are_sound = firsts == np.searchsorted(unusual, stops)
    for row in np.flatnonzero(~are_sound).tolist():
        text = data[starts[row] : stops[row]]
        are_sound[row] = _valid_texts(text, np.array([0, len(text)])) is not None
    return are_sound


def _strings(data: np.ndarray, lengths: np.ndarray) -> list[str] | None:
    """Return the texts of UTF-8 bytes that follow one another; None if some are not UTF-8."""
    texts = _valid_texts(data, offsets_of(lengths))
    return None if texts is None else list(texts.to_numpy(zero_copy_only=False).tolist())


def _valid_texts(data: np.ndarray, offsets: np.ndarray) -> pa.LargeStringArray | None:
    """Return the texts between offsets into UTF-8 bytes; None if some are not UTF-8."""
    buffers = pa.py_buffer(offsets), pa.py_buffer(data)
    texts = pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return texts


def check_header(
    path: str | Path, line: int, columns: Sequence[str], dialect: TableDialect
) -> None:
    """Raise InputError if a header cannot name columns.

    Args:
        path: the file.
        line: of the header, from 1.
        columns: names in file order.
        dialect: of the file.
    """
    joined = "".join(columns)
    if has_surrogates(joined) or "\0" in joined:
        raise InputError(
            f"{path}:{line}: the header is {dialect.invalid_text}; {encoding_advice(str(path))}"
        )
    if "\r" in joined and "\n" not in joined:
        raise InputError(f"{path}:{line}: lines end with CR; convert them: tr '\\r' '\\n'")


def column_names(written: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each column, each once, like pandas: `a`, `a.1`, `Unnamed: 2`.

    Tables of unused columns may repeat a name, as Jira's exports do, or have none, as those of an
    index in pandas.

    Args:
        written: names in the file, in its order.
    """
    taken = set(written)
    names: list[str] = []
    for place, name in enumerate(written):
        base = name if name.strip() else f"Unnamed: {place}"
        numbered = (f"{base}.{number}" for number in itertools.count(1))
        is_first = base not in names and (base == name or base not in taken)
        names.append(base if is_first else next(each for each in numbered if each not in taken))
        taken.add(names[-1])
    return tuple(names)


def too_long(path: str | Path, line: int, dialect: TableDialect) -> Reject:
    """Return the reject for a row of more characters than the dialect allows."""
    return Reject(str(path), line, TOO_LONG, f"more than {dialect.max_row_characters:,} characters")
