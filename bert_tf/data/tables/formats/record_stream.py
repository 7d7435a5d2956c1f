"""Records of a delimited file in file order, in bounded memory, and its delimiter and quotes."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator

import numpy as np

from bert_tf.data.tables.formats.csv_records import (
    RecordFault,
    Records,
    field_bytes,
    find_records,
)

DELIMITERS = (",", ";", "\t", "|")
_SAMPLED_RECORDS = 20  # that the delimiter of a file without a header is found in
_QUOTE = ord('"')
_NAMED_DELIMITER = re.compile(rb'"?sep=([^"\r\n])"?\1*[\r\n]', re.IGNORECASE)  # as Excel writes it


def find_delimiter(sample: np.ndarray, *, has_header: bool, longest: int, is_end: bool) -> str:
    """Choose the one of comma, semicolon, tab and bar that gives the header most columns.

    Bars, common in names and texts, need equally many cells in the first rows. Without a header, it
    is the delimiter that gives most of the first rows as many cells, two or more, as the first row.

    Args:
        sample: uint8, the beginning of the file.
        has_header: whether its first record is a header.
        longest: characters of a record; longer ones are broken.
        is_end: whether the sample is the whole file.
    """

    def agreement(delimiter: str) -> float:
        records = find_records(
            sample,
            delimiter=ord(delimiter),
            has_quotes=True,
            longest=longest,
            most_records=1 if has_header and delimiter != "|" else _SAMPLED_RECORDS,
            is_end=is_end,
        )
        counts = np.diff(records.offsets)[records.faults == RecordFault.SOUND]
        if not len(counts) or (has_header and records.faults[0] != RecordFault.SOUND):
            return 0
        if has_header:
            are_alike = bool((counts == counts[0]).all())
            return int(counts[0]) if are_alike else min(int(counts[0]), 1.5)
        alike = (counts == counts[0]) & (counts > 1)
        return int(alike.sum()) if delimiter != "|" or alike.all() else 0

    return max(DELIMITERS, key=agreement)


def named_delimiter(sample: np.ndarray) -> str | None:
    """Read the delimiter named by a first line `sep=;`, if any."""
    match = _NAMED_DELIMITER.match(sample[:256].tobytes())
    return match[1].decode("latin-1") if match else None


def is_quoted_tsv(sample: np.ndarray, *, longest: int, is_end: bool) -> bool:
    """Whether the cells of a TSV file are quoted as those of CSV, as pandas and Excel do.

    Every cell that begins with a quote is then quoted well, and some by need: they hold doubled
    quotes, or tabs and line ends without which rows would not have the header's cells. Or all cells
    of the first record are quoted.

    Args:
        sample: uint8, the beginning of the file.
        longest: characters of a record; longer ones are broken.
        is_end: whether the sample is the whole file.
    """
    if _QUOTE not in sample:
        return False
    find = functools.partial(
        find_records, sample, delimiter=ord("\t"), longest=longest, is_end=is_end
    )
    plain, quoted = find(has_quotes=False), find(has_quotes=True)
    if not len(quoted.faults) or (quoted.faults != RecordFault.SOUND).any():
        return False
    broken, left = (
        int(np.count_nonzero(counts != counts[0]))
        for counts in (np.diff(plain.offsets), np.diff(quoted.offsets))
    )
    starts, stops = quoted.field_starts, quoted.field_stops
    is_quoted = (starts > 0) & (sample[np.maximum(starts - 1, 0)] == _QUOTE)
    if left < broken:
        return bool(is_quoted.any())
    quotes, breaks = (
        np.concatenate([[0], np.cumsum(np.isin(sample, each))])
        for each in ([_QUOTE], [ord("\t"), ord("\n"), ord("\r")])
    )
    is_one_line = breaks[starts] == breaks[stops]
    is_header_quoted = (
        len(quoted.lines) == len(plain.lines) and is_quoted[: quoted.offsets[1]].all()
    )
    return bool(
        is_header_quoted or (is_quoted & is_one_line & (quotes[starts] < quotes[stops])).any()
    )


def first_cells(data: np.ndarray, records: Records) -> list[str]:
    """Read cells of the first record, which is sound; bytes other than UTF-8 become surrogates."""
    fields = np.arange(records.offsets[1])
    copied, offsets = field_bytes(data, records, fields)
    content = copied.tobytes()
    bounds = offsets.tolist()
    return [
        content[begin:end].decode("utf-8", "surrogateescape")
        for begin, end in itertools.pairwise(bounds)
    ]


def _begins_with_quote(data: np.ndarray, records: Records) -> bool:
    starts = records.field_starts
    return bool((data[starts[starts < len(data)]] == _QUOTE).any())


_CHUNK_BYTES = 1 << 20  # read at once
_MOST_RECORDS = 8192  # found at once


@dataclasses.dataclass(frozen=True)
class LongLine:
    """The first line, from 1, of a record that is longer than allowed and will be skipped."""

    line: int


class RecordStream:
    """Records of bytes that are read part by part.

    The bytes from the next record on are kept until a whole record is among them; a record beyond
    `longest` is skipped to the end of its line, so that memory is bounded.

    Args:
        read: returns the next bytes, about so many; none at the end.
        has_quotes: whether quotes mean anything.
        longest: characters of a record.

    Attributes:
        has_quotes: as given; may be set until a record has been skipped.
        settles_quotes: whether the first field that begins with a quote decides `has_quotes`: a TSV
            file of pandas has its first quoted cell anywhere, and rows before it are the same in
            both readings.
        is_end: whether all bytes of the file have been read.
    """

    def __init__(self, read: Callable[[int], bytes], *, has_quotes: bool, longest: int):
        self._read = read
        self.has_quotes = has_quotes
        self.settles_quotes = False
        self._longest = longest
        self._data = np.zeros(0, np.uint8)
        self._start = 0
        self._line = 1
        self.is_end = False

    def peek(self) -> np.ndarray:
        """Return bytes uint8 from the next record on, with all of it unless it is too long."""
        while not self.is_end:
            records = self._find(ord(","), 1)
            if len(records.lines) or records.is_cut_off:
                break
            self._fill()
        return self._data[self._start :]

    def first(
        self, delimiter: str, *, is_skipped: bool = False
    ) -> tuple[np.ndarray, Records] | LongLine | None:
        """Find the next record, which stays the next one unless skipped.

        Returns:
            Bytes, uint8, and the record in them; a LongLine if it is too long; None at the end of
            the file.
        """
        start, line = self._start, self._line
        for window in self.windows(delimiter, most_records=1):
            if not isinstance(window, LongLine) and not is_skipped:
                self._start, self._line = start, line
            return window
        return None

    def windows(
        self, delimiter: str, *, most_records: int = _MOST_RECORDS
    ) -> Iterator[tuple[np.ndarray, Records] | LongLine]:
        """Yield the records to the end of the file, with the bytes that hold them.

        Args:
            delimiter: one character of ASCII.
            most_records: of a window.

        Yields:
            Bytes, uint8, and at least one record in them; or a LongLine.
        """
        while True:
            records = self._find(ord(delimiter), most_records)
            if self.settles_quotes and _begins_with_quote(self._data, records):
                self._settle_quotes()
                continue
            self._start, self._line = records.end, records.end_line
            if len(records.lines):
                yield self._data, records
            elif records.is_cut_off:
                yield LongLine(self._line)
                self._skip_line()
                self._line += 1
            elif self.is_end:
                return
            else:
                self._fill()

    def _settle_quotes(self) -> None:
        """Decide by the following bytes, as many as there are at the beginning of a file."""
        while not self.is_end and len(self._data) - self._start < 2 * _CHUNK_BYTES:
            self._fill()
        rest = self._data[self._start :]
        self.has_quotes = is_quoted_tsv(rest, longest=self._longest, is_end=self.is_end)
        self.settles_quotes = False

    def skip(self, records: Records) -> None:
        """Go on after records of `first`."""
        self._start, self._line = records.end, records.end_line

    def _find(self, delimiter: int, most_records: int) -> Records:
        return find_records(
            self._data,
            delimiter=delimiter,
            has_quotes=self.has_quotes,
            first_line=self._line,
            start=self._start,
            longest=self._longest,
            most_records=most_records,
            is_end=self.is_end,
        )

    def _fill(self) -> None:
        """Read more bytes, and drop those before the next record.

        At least as many are asked for as are kept, so that a long record is not searched too often.
        """
        rest = self._data[self._start :]
        more = self._read(max(_CHUNK_BYTES, len(rest)))
        self.is_end = not more
        self._data = np.concatenate([rest, np.frombuffer(more, np.uint8)])
        self._start = 0

    def _skip_line(self) -> None:
        """Drop the rest of a line that does not end in the bytes read so far."""
        self._start = len(self._data)
        while not self.is_end:
            self._fill()
            is_line_end = self._data == ord("\n")
            if self.has_quotes:
                is_line_end |= self._data == ord("\r")
            places = np.flatnonzero(is_line_end)
            if not len(places):
                self._start = len(self._data)
                continue
            place = int(places[0])
            if place + 1 == len(self._data):  # a CR may be half of a line end
                self._start, place = place, 0
                self._fill()
            is_pair = self._data[place : place + 2].tobytes() == b"\r\n"
            self._start = place + 1 + is_pair
            return
