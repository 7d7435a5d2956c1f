"""Rows of CSV (RFC 4180) and TSV files, with their line numbers; bad rows do not end the reading.

A quoted cell may hold delimiters, line ends and doubled quotes. A quote that is never closed must
not swallow the rest of the file: where a record cannot be completed (the end of the file comes
first, the record grows beyond `max_row_characters`, or a quote inside is followed by other text, as
the opening quote of a later row is), only the line it starts on is rejected and reading goes on at
the next line.

TSV follows GLUE: no quoting, a quote is a character like any other.
"""

from __future__ import annotations

import collections
import csv
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.data.tables.dialect import TableDialect, numbered_columns
from bert_tf.data.tables.reasons import (
    QUOTE_NOT_CLOSED,
    TEXT_AFTER_QUOTE,
    TOO_LONG,
    wrong_cells,
)
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.text_files import (
    CutLine,
    Opener,
    bounded_lines,
    has_byte_order_mark,
    has_surrogates,
    open_local,
    open_text,
)

DELIMITERS = (",", ";", "\t")
_SAMPLED_LINES = 20  # that the delimiter of a file without a header is found in
_LINE_CHARACTERS = 50  # that a short line in a quoted cell counts as: about what it takes in memory
_DELIMITER_NAMES = {";": "semicolons", "\t": "tabs"}

ParsedRow = tuple[int, str, dict[str, Any] | Reject]
"""Line number, the row as it stands in the file without its line end, and cells or a reject."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableHeader:
    """How a delimited file names and separates its columns.

    Attributes:
        columns: the names in file order; numbers from 1 where there is no header.
        raw: the header as it stands in the file, without byte-order mark and line end; None where
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

    The delimiter is the one of comma, semicolon and tab that gives the header most columns; without
    a header, the one that gives most of the first lines as many cells as the first of them. Another
    one than the comma is said aloud.

    Raises:
        InputError: no header, two columns of one name, a header that is not text.
        UsageError: the file cannot be read.
    """
    csv.field_size_limit(dialect.max_row_characters)  # one for the process; 131,072 by default
    with open_text(path, newline="", encoding=dialect.encoding, opener=opener) as stream:
        longest = dialect.max_row_characters
        lines = _ReplayedLines(bounded_lines(stream, longest, newline=""), longest)
        first_line, number = _first_line(path, lines, dialect)
        if dialect.has_header:
            sample = [first_line]
            delimiter = _choose_delimiter(first_line)
        else:
            sample = [first_line, *lines.sample(_SAMPLED_LINES - 1)]
            delimiter = _most_regular_delimiter(sample)
        if delimiter != "," and console is not None:
            console.info(f"{path}: columns are separated by {_DELIMITER_NAMES[delimiter]}")
        lines.push_back(sample)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        lines.taken.clear()
        try:
            columns = next(reader)
        except (csv.Error, _TooLongError) as error:
            what = "header" if dialect.has_header else "first row"
            raise InputError(
                f"{path}:{number}: the {what} is not a CSV row ({error}); correct its quotes"
            ) from None
        raw = None
        if dialect.has_header:
            check_header(path, number, columns, dialect)
            raw = _without_line_end("".join(lines.taken))
            number += len(lines.taken)
        else:
            columns = list(numbered_columns(len(columns)))
            lines.push_back(lines.taken)
        header = TableHeader(
            columns=tuple(columns),
            raw=raw,
            delimiter=delimiter,
            has_mark=has_byte_order_mark(path, opener),
        )
        yield header
        yield from _csv_rows_below(path, number, header, reader, lines, dialect)


def _csv_rows_below(
    path: str | Path,
    number: int,
    header: TableHeader,
    reader: Any,
    lines: _ReplayedLines,
    dialect: TableDialect,
) -> Iterator[ParsedRow]:
    while True:
        lines.taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, _TooLongError) as error:
            first, *rest = lines.taken
            lines.push_back(rest)
            if rest or not isinstance(error, _TooLongError):
                reject = Reject(str(path), number, _fault(error, rest))
            else:
                reject = too_long(path, number, dialect)
            yield number, _without_line_end(first), reject
            number += 1
            continue
        raw = _without_line_end("".join(lines.taken))
        if not _is_blank(raw, header.delimiter):
            yield number, raw, _row_or_reject(path, number, header.columns, cells, raw, dialect)
        number += len(lines.taken)


def _fault(error: Exception, rest: list[str]) -> str:
    """Why a record cannot be completed, of which `rest` are the lines behind the first."""
    if rest or "end of data" in str(error):
        return QUOTE_NOT_CLOSED
    return TEXT_AFTER_QUOTE


def read_tsv_rows(
    path: str | Path, dialect: TableDialect, opener: Opener = open_local
) -> Iterator[TableHeader | ParsedRow]:
    """Yields the header of a TSV file, then its rows; quotes mean nothing.

    Raises:
        InputError: no header, two columns of one name, a header that is not text.
        UsageError: the file cannot be read.
    """
    with open_text(path, newline="\n", encoding=dialect.encoding, opener=opener) as stream:
        columns: tuple[str, ...] | None = None
        lines = bounded_lines(stream, dialect.max_row_characters, newline="\n")
        for number, line in enumerate(lines, start=1):
            if isinstance(line, CutLine):
                if columns is None:
                    raise _no_header(path, number, dialect)
                yield number, "", too_long(path, number, dialect)
                continue
            raw = _without_line_end(line)
            if _is_blank(raw, "\t"):
                continue
            cells = raw.split("\t")
            if columns is None:
                if dialect.has_header:
                    check_header(path, number, cells, dialect)
                columns = tuple(cells) if dialect.has_header else numbered_columns(len(cells))
                yield TableHeader(
                    columns=columns,
                    raw=raw if dialect.has_header else None,
                    delimiter="\t",
                    has_mark=has_byte_order_mark(path, opener),
                )
                if dialect.has_header:
                    continue
            yield number, raw, _row_or_reject(path, number, columns, cells, raw, dialect)
        if columns is None:
            raise _empty(path, dialect)


def check_header(
    path: str | Path, line: int, columns: Sequence[str], dialect: TableDialect
) -> None:
    """Refuses a header that cannot name its columns.

    Raises:
        InputError: a name stands there twice, or the header is not text.
    """
    joined = "".join(columns)
    if has_surrogates(joined) or "\0" in joined:
        raise InputError(
            f"{path}:{line}: the header is {dialect.invalid_text}; give the file's encoding, "
            "for example --encoding latin-1"
        )
    twice = [name for name, count in collections.Counter(columns).items() if count > 1]
    if twice:
        raise InputError(
            f"{path}:{line}: column {twice[0]!r} stands there twice; rename or remove one of the "
            "two, or give --no-header if this line is a row"
        )


def _empty(path: str | Path, dialect: TableDialect) -> InputError:
    expected = "a line with the names of the columns" if dialect.has_header else "rows"
    return InputError(f"{path}: is empty; expected {expected}")


def too_long(path: str | Path, line: int, dialect: TableDialect) -> Reject:
    """The reject for a row of more characters than allowed."""
    return Reject(str(path), line, TOO_LONG, f"more than {dialect.max_row_characters:,} characters")


def _no_header(path: str | Path, line: int, dialect: TableDialect) -> InputError:
    return InputError(
        f"{path}:{line}: the first line has more than {dialect.max_row_characters:,} characters; "
        "correct the line ends of the file, or raise max_row_characters"
    )


class _TooLongError(Exception):
    """A record has more characters than allowed."""


class _ReplayedLines:
    """The lines of a stream; what a failed record took of them can be given back.

    Args:
        stream: the lines.
        longest: characters that may be taken before `taken` is cleared.
    """

    def __init__(self, stream: Iterator[str], longest: int):
        self._stream = stream
        self._longest = longest
        self._pending: collections.deque[str] = collections.deque()
        self._characters = 0
        self.taken: list[str] = []

    def __iter__(self) -> _ReplayedLines:
        return self

    def __next__(self) -> str:
        line = self._pending.popleft() if self._pending else next(self._stream)
        self.taken.append(line)
        before = self._characters if len(self.taken) > 1 else 0
        self._characters = before + max(len(line), _LINE_CHARACTERS)
        if isinstance(line, CutLine) or self._characters > self._longest:
            raise _TooLongError(f"more than {self._longest:,} characters")
        return line

    def sample(self, count: int) -> list[str]:
        """The next lines, fewer at the end and before one that is too long."""
        self.taken.clear()
        try:
            return list(itertools.islice(self, count))
        except _TooLongError:
            *sample, last = self.taken
            self.push_back([last])
            return sample

    def push_back(self, lines: list[str]) -> None:
        self._pending.extendleft(reversed(lines))


def _first_line(path: str | Path, lines: _ReplayedLines, dialect: TableDialect) -> tuple[str, int]:
    number = 0
    try:
        for line in lines:
            number += 1
            lines.taken.clear()
            if line.strip():
                return line, number
    except _TooLongError:
        raise _no_header(path, number + 1, dialect) from None
    raise _empty(path, dialect)


def _choose_delimiter(header: str) -> str:
    def column_count(delimiter: str) -> int:
        return len(next(csv.reader([header], delimiter=delimiter)))

    return max(DELIMITERS, key=column_count)


def _most_regular_delimiter(sample: list[str]) -> str:
    """The delimiter that gives most lines as many cells as the first, which has two or more."""

    def agreement(delimiter: str) -> int:
        try:
            widths = [len(cells) for cells in csv.reader(sample, delimiter=delimiter) if cells]
        except csv.Error:
            return 0
        return sum(width == widths[0] > 1 for width in widths)

    return max(DELIMITERS, key=agreement)


def _without_line_end(line: str) -> str:
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line


def _is_blank(raw: str, delimiter: str) -> bool:
    """Whether a line is no row: a delimiter makes it one of empty cells, even if that is a tab."""
    return not raw.strip(" \t\r\n".replace(delimiter, ""))


def _row_or_reject(
    path: str | Path,
    line: int,
    columns: Sequence[str],
    cells: list[str],
    raw: str,
    dialect: TableDialect,
) -> dict[str, Any] | Reject:
    if len(cells) != len(columns):
        fault = wrong_cells(len(cells), len(columns), has_header=dialect.has_header)
        return Reject(str(path), line, *fault)
    if has_surrogates(raw):
        return Reject(str(path), line, dialect.invalid_text)
    return dict(zip(columns, cells, strict=True))
