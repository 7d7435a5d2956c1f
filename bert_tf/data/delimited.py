"""Rows of CSV (RFC 4180) and TSV files, with their line numbers; bad rows do not end the reading.

A quoted cell may hold delimiters, line ends and doubled quotes. A quote that is never closed must
not swallow the rest of the file: where a record cannot be completed (the end of the file comes
first, the cell grows beyond `MAX_CELL_CHARACTERS`, or a quote inside is followed by other text, as
the opening quote of a later row is), only the line it starts on is rejected and reading goes on at
the next line.

TSV follows GLUE: no quoting, a quote is a character like any other.
"""

from __future__ import annotations

import collections
import csv
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf.config.console import Console
from bert_tf.config.errors import InputError
from bert_tf.data.rejects import Reject
from bert_tf.data.text_files import has_surrogates, open_text

MAX_CELL_CHARACTERS = 1 << 24
DELIMITERS = (",", ";", "\t")
_DELIMITER_NAMES = {";": "semicolons", "\t": "tabs"}

ParsedRow = tuple[int, str, dict[str, Any] | Reject]
"""Line number, the row as it stands in the file without its line end, and cells or a reject."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableHeader:
    """How a delimited file names and separates its columns.

    Attributes:
        columns: the names in file order.
        raw: the header as it stands in the file, without byte-order mark and line end.
        delimiter: what separates two cells.
    """

    columns: tuple[str, ...]
    raw: str
    delimiter: str


def read_csv_rows(
    path: str | Path, *, console: Console | None
) -> Iterator[TableHeader | ParsedRow]:
    """Yields the header of a CSV file, then its rows.

    The delimiter is the one of comma, semicolon and tab that gives the header most columns; another
    one than the comma is said aloud.

    Raises:
        InputError: no header, two columns of one name, a header that is not UTF-8.
        UsageError: the file cannot be read.
    """
    csv.field_size_limit(MAX_CELL_CHARACTERS)  # the default of 131,072 is one for the process
    with open_text(path, newline="") as stream:
        lines = _ReplayedLines(stream)
        header_text, header_line = _first_line(path, lines)
        delimiter = _choose_delimiter(header_text)
        if delimiter != "," and console is not None:
            console.say(f"{path}: columns are separated by {_DELIMITER_NAMES[delimiter]}")
        lines.push_back([header_text])
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        lines.taken.clear()
        try:
            columns = next(reader)
        except csv.Error as error:
            raise InputError(
                f"{path}:{header_line}: the header is not a CSV row ({error}); correct its quotes"
            ) from None
        check_header(path, header_line, columns)
        raw = _without_line_end("".join(lines.taken))
        header = TableHeader(columns=tuple(columns), raw=raw, delimiter=delimiter)
        yield header
        yield from _csv_rows_below(path, header_line + len(lines.taken), header, reader, lines)


def _csv_rows_below(
    path: str | Path, number: int, header: TableHeader, reader: Any, lines: _ReplayedLines
) -> Iterator[ParsedRow]:
    while True:
        lines.taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            first, *rest = lines.taken
            lines.push_back(rest)
            yield number, _without_line_end(first), Reject(str(path), number, _fault(error, rest))
            number += 1
            continue
        raw = _without_line_end("".join(lines.taken))
        if not _is_blank(raw, header.delimiter):
            yield number, raw, _row_or_reject(path, number, header.columns, cells, raw)
        number += len(lines.taken)


def _fault(error: csv.Error, rest: list[str]) -> str:
    """Why a record cannot be completed, of which `rest` are the lines behind the first."""
    if rest or "end of data" in str(error):
        return "quote is not closed"
    if "field limit" in str(error):
        return f"cell of more than {MAX_CELL_CHARACTERS:,} characters"
    return "text after a closing quote"


def read_tsv_rows(path: str | Path) -> Iterator[TableHeader | ParsedRow]:
    """Yields the header of a TSV file, then its rows; quotes mean nothing.

    Raises:
        InputError: no header, two columns of one name, a header that is not UTF-8.
        UsageError: the file cannot be read.
    """
    with open_text(path, newline="\n") as stream:
        columns: list[str] | None = None
        for number, line in enumerate(stream, start=1):
            raw = _without_line_end(line)
            if _is_blank(raw, "\t"):
                continue
            cells = raw.split("\t")
            if columns is None:
                columns = cells
                check_header(path, number, columns)
                yield TableHeader(columns=tuple(columns), raw=raw, delimiter="\t")
            else:
                yield number, raw, _row_or_reject(path, number, columns, cells, raw)
        if columns is None:
            raise InputError(f"{path}: is empty; expected a line with the names of the columns")


def check_header(path: str | Path, line: int, columns: list[str]) -> None:
    """Refuses a header that cannot name its columns.

    Raises:
        InputError: a name stands there twice, or the header is not UTF-8 text.
    """
    joined = "".join(columns)
    if has_surrogates(joined) or "\0" in joined:
        raise InputError(
            f"{path}:{line}: the header is not UTF-8 text; convert the file first, for example "
            "with iconv -f LATIN1 -t UTF-8"
        )
    twice = [name for name, count in collections.Counter(columns).items() if count > 1]
    if twice:
        raise InputError(
            f"{path}:{line}: column {twice[0]!r} stands there twice; "
            "rename or remove one of the two"
        )


class _ReplayedLines:
    """The lines of a stream; what a failed record took of them can be given back."""

    def __init__(self, stream: Iterator[str]):
        self._stream = stream
        self._pending: collections.deque[str] = collections.deque()
        self.taken: list[str] = []

    def __iter__(self) -> _ReplayedLines:
        return self

    def __next__(self) -> str:
        line = self._pending.popleft() if self._pending else next(self._stream)
        self.taken.append(line)
        return line

    def push_back(self, lines: list[str]) -> None:
        self._pending.extendleft(reversed(lines))


def _first_line(path: str | Path, lines: _ReplayedLines) -> tuple[str, int]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            return line, number
    raise InputError(f"{path}: is empty; expected a line with the names of the columns")


def _choose_delimiter(header: str) -> str:
    def column_count(delimiter: str) -> int:
        return len(next(csv.reader([header], delimiter=delimiter)))

    return max(DELIMITERS, key=column_count)


def _without_line_end(line: str) -> str:
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line


def _is_blank(raw: str, delimiter: str) -> bool:
    """Whether a line is no row: a delimiter makes it one of empty cells, even if that is a tab."""
    return not raw.strip(" \t\r\n".replace(delimiter, ""))


def _row_or_reject(
    path: str | Path, line: int, columns: Sequence[str], cells: list[str], raw: str
) -> dict[str, Any] | Reject:
    if len(cells) != len(columns):
        few_or_many = "few" if len(cells) < len(columns) else "many"
        detail = f"{len(cells)} where the header has {len(columns)}"
        return Reject(str(path), line, f"too {few_or_many} cells", detail)
    if has_surrogates(raw):
        return Reject(str(path), line, "not UTF-8 text")
    return dict(zip(columns, cells, strict=True))
