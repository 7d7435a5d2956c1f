"""Headers of CSV (RFC 4180) and TSV files: separator, quotes, and the names of the columns."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bert_tf.base.errors import InputError, NoRowsError
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
    decoded_texts,
    find_delimiter,
    first_cells,
    is_quoted_tsv,
    named_delimiter,
)
from bert_tf.data.tables.rejects import REMEDIES, TOO_LONG
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
_ROWS_WITH_NAMES = 20  # at most, that show whether rows have names
_LEAST_ROWS_WITH_NAMES = 2  # a single row may have a comma in its text
_LEAST_COUNTED_ROWS = 3  # without quotes, where numbers from 1 may be a column of their own
_NUMBERS_ROWS = re.compile(r"#|(.*[\W_])?(id|ids|idx|index|key|line|no|nr|num|number|row)", re.I)
_LONGEST_FIRST_ROW = 1 << 20  # characters; a longer one has no name


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableHeader:
    """How a delimited file names and separates its columns."""

    # in file order, without empty ones at the end, each name once (`column_names`); without a
    # header the numbers from 1
    columns: tuple[str, ...]
    raw: str | None  # as in the file, without mark and line end; None without a header
    delimiter: str  # the character between two cells
    has_mark: bool  # whether the file begins with a byte-order mark
    has_quotes: bool = True  # whether cells may be quoted
    empty_columns: int = 0  # number of empty names at the end
    may_have_more: bool = False  # whether rows may have cells beyond the columns
    line: int = 0  # number of the header's line; without a header, of the line before the rows
    written: tuple[str, ...] = ()  # the names as in the file; () without a header

    @property
    def repeated(self) -> set[str]:
        """Return the names that several columns have; such a name does not choose a column."""
        return {name for name, count in collections.Counter(self.written).items() if count > 1}


def read_table_header(
    path: str | Path, dialect: TableDialect, *, has_quotes: bool, opener: Opener = open_local
) -> TableHeader:
    """Read the header of a CSV (with quotes) or TSV file; errors as of `open_records`."""
    with open_records(path, dialect, has_quotes=has_quotes, opener=opener) as (header, _):
        return header


def is_quoted_later(
    path: str | Path, dialect: TableDialect, *, opener: Opener = open_local
) -> bool:
    """Whether a TSV file has quoted cells, judged by its first cell that begins with a quote.

    The cell may be anywhere; rows before it are the same in both readings. Errors are those of
    `open_records`.
    """
    with open_utf8(path, encoding=dialect.encoding, opener=opener) as file:
        before = b""  # the last byte of the part before
        while part := file.read(_SEARCHED_BYTES):
            if _OPENING_QUOTE.search(before + part):
                break
            before = part[-1:]
        else:
            return False
    with open_records(path, dialect, has_quotes=False, opener=opener) as (header, stream):
        for _ in stream.windows(header.delimiter):
            if not stream.settles_quotes:
                break
        return stream.has_quotes


@contextmanager
def open_records(
    path: str | Path, dialect: TableDialect, *, has_quotes: bool, opener: Opener
) -> Iterator[tuple[TableHeader, RecordStream]]:
    """Open a file; yield its header, and the stream of the rows.

    Args:
        path: the file.
        dialect: encoding, whether there is a header, and limits.
        has_quotes: true for CSV. TSV may still turn out to be quoted.
        opener: opens the file, which may be on other storage.

    Raises:
        NoRowsError: the file is empty.
        InputError: the header is too long, not text, not a CSV row, or lines end with CR; or the
            file is not text, or damaged.
        UsageError: the file cannot be opened.
    """
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
    """Read the first record, for the names of the columns, or without a header for their number."""
    first_record = stream.first(delimiter)
    if first_record is None:
        expected = "a line with the names of the columns" if dialect.has_header else "rows"
        raise NoRowsError(f"{path}: is empty; expected {expected}")
    if isinstance(first_record, LongLine):
        raise _too_long_header(path, first_record.line, dialect)
    data, records = first_record
    line = int(records.lines[0])
    fault = int(records.faults[0])
    first = data[records.starts[0] : records.stops[0]].tobytes()
    if fault == RecordFault.LONG_RECORD:
        raise _too_long_header(path, line, dialect)
    if fault != RecordFault.SOUND:
        raise _broken_header(path, line, first, fault, dialect)
    cells = first_cells(data, records)
    spaced = next(filter(_SPACED_QUOTES.fullmatch, cells), None)
    if spaced and stream.has_quotes:
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
        raw = first.decode("utf-8")
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


def _too_long_header(path: str | Path, line: int, dialect: TableDialect) -> InputError:
    """Return the error for a first record with too many characters."""
    return InputError(
        f"{path}:{line}: the first line has more than {dialect.max_row_characters:,} "
        f"characters; {REMEDIES[TOO_LONG]}"
    )


def _broken_header(
    path: str | Path, line: int, raw: bytes, fault: int, dialect: TableDialect
) -> InputError:
    """Return the error for a first record whose quotes are wrong.

    Args:
        path: the file.
        line: of the record, from 1.
        raw: bytes of the record.
        fault: a `RecordFault`.
        dialect: whether the record is a header.
    """
    if _SEPARATED_BY_BLANKS.fullmatch(raw.decode("utf-8", "replace").strip()):
        return InputError(
            f"{path}:{line}: blanks separate the columns, as R's write.table writes them; "
            "write commas (sep = ',') in .csv, or tabs (sep = '\\t') in .tsv"
        )
    kind = "header" if dialect.has_header else "first row"
    return InputError(
        f"{path}:{line}: the {kind} is not a CSV row ({FAULT_REASONS[fault]}); correct its quotes"
    )


def _has_row_names(data: np.ndarray, header: Records, stream: RecordStream, delimiter: str) -> bool:
    """Whether rows have one cell more than the header, as R's `write.table` writes their names.

    R quotes all names, of columns and rows, or none. Names of rows must differ; names without
    quotes must count from 1. Other rows with one cell more have a separator too many and become
    rejects: a last cell is empty, a blank follows a separator, or the numbers are those of a column
    `id`.

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
    names = decoded_texts(copied, offsets)
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
    """Return a different name for each column, like pandas: `a`, `a.1`, `Unnamed: 2`.

    Columns that are not used may repeat a name, as in exports of Jira, or have none, as an index of
    pandas does.

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
