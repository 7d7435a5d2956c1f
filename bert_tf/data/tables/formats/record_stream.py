"""Records of a delimited file in file order, in bounded memory, and its delimiter and quotes."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from bert_tf.data.tables.formats.csv_records import (
    RecordFault,
    Records,
    field_bytes,
    find_records,
)

DELIMITERS = (",", ";", "\t", "|")
_SAMPLED_RECORDS = 20  # at the beginning of a file, which show its delimiter
_NAME_BYTES = 256  # searched for a delimiter named by the file itself
# Columns that bars make if rows differ in them: more than no delimiter does, fewer than two
_DOUBTFUL_COLUMNS = 1.5
_QUOTE = ord('"')
_NAMED_DELIMITER = re.compile(rb'"?sep=([^"\r\n])"?\1*[\r\n]', re.IGNORECASE)  # as Excel writes it


def find_delimiter(sample: np.ndarray, *, has_header: bool, longest: int, is_end: bool) -> str:
    """Choose comma, semicolon, tab or bar.

    With a header, the delimiter that gives it the most columns is chosen. Bars are common in names
    and texts, so they must also give the first rows as many cells as the header. Without a header,
    the delimiter is chosen by which the most of the first rows have as many cells as the first one,
    and at least two.

    Args:
        sample: uint8, the beginning of the file.
        has_header: whether its first record is a header.
        longest: characters of a record; longer ones are broken.
        is_end: whether the sample is the whole file.
    """

    def rank(delimiter: str) -> float:
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
            columns = int(counts[0])
            if (counts == columns).all():
                return columns
            return min(columns, _DOUBTFUL_COLUMNS)
        is_alike = (counts == counts[0]) & (counts > 1)
        if delimiter == "|" and not is_alike.all():
            return 0
        return int(is_alike.sum())

    return max(DELIMITERS, key=rank)


def named_delimiter(sample: np.ndarray) -> str | None:
    """Read the delimiter named by a first line `sep=;`, if any."""
    match = _NAMED_DELIMITER.match(sample[:_NAME_BYTES].tobytes())
    return match[1].decode("latin-1") if match else None


def is_quoted_tsv(sample: np.ndarray, *, longest: int, is_end: bool) -> bool:
    """Whether the cells of a TSV file are quoted as those of CSV, as pandas and Excel do.

    They are if every cell that begins with a quote is quoted well, and one of these holds: some
    cells need their quotes, because they hold doubled quotes, or tabs and line ends that would give
    rows more or fewer cells than the header has; or all cells of the first record are quoted.

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
    plain = find(has_quotes=False)
    quoted = find(has_quotes=True)
    if (
        not len(plain.faults)
        or not len(quoted.faults)
        or (quoted.faults != RecordFault.SOUND).any()
    ):
        return False
    starts = quoted.field_starts
    stops = quoted.field_stops
    is_quoted = (starts > 0) & (sample[np.maximum(starts - 1, 0)] == _QUOTE)
    if _unlike_first(quoted) < _unlike_first(plain):
        return bool(is_quoted.any())
    is_first_quoted = is_quoted[: quoted.offsets[1]].all()
    if is_first_quoted and len(quoted.lines) == len(plain.lines):
        return True
    quotes = _counts_before(sample, [_QUOTE])
    breaks = _counts_before(sample, [ord("\t"), ord("\n"), ord("\r")])
    has_doubled_quotes = quotes[starts] < quotes[stops]
    has_breaks = breaks[starts] < breaks[stops]
    return bool((is_quoted & has_doubled_quotes & ~has_breaks).any())


def _unlike_first(records: Records) -> int:
    """Count records with another number of fields than the first."""
    counts = np.diff(records.offsets)
    return int(np.count_nonzero(counts != counts[0]))


def _counts_before(data: np.ndarray, values: list[int]) -> np.ndarray:
    """Count the bytes with one of the values before each place: int64 [len(data) + 1]."""
    return np.concatenate([[0], np.cumsum(np.isin(data, values))])


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


def decoded_texts(data: np.ndarray, offsets: np.ndarray) -> list[str] | None:
    """Return the texts between offsets into UTF-8 bytes; None if some are not UTF-8.

    Args:
        data: uint8.
        offsets: int64 [texts + 1].
    """
    texts = utf8_texts(data, offsets)
    return None if texts is None else list(texts.to_numpy(zero_copy_only=False).tolist())


def utf8_texts(data: np.ndarray, offsets: np.ndarray) -> pa.LargeStringArray | None:
    """Return the same texts as `decoded_texts`, as an array of Arrow without a copy."""
    buffers = pa.py_buffer(offsets), pa.py_buffer(data)
    texts = pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return texts


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
        has_quotes: whether fields may be quoted.
        longest: characters of a record.

    Attributes:
        has_quotes: whether fields may be quoted; may be set until a record has been skipped.
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
        """Find the next record.

        Args:
            delimiter: one character of ASCII.
            is_skipped: whether to continue after the record; else it stays the next one.

        Returns:
            Bytes, uint8, and the record in them; a LongLine if it is too long; None at the end of
            the file.
        """
        start = self._start
        line = self._line
        for window in self.windows(delimiter, most_records=1):
            if not isinstance(window, LongLine) and not is_skipped:
                self._start = start
                self._line = line
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
            self.skip(records)
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
        """Decide by the following bytes, at least as many as decide at the beginning of a file."""
        while not self.is_end and len(self._data) - self._start < 2 * _CHUNK_BYTES:
            self._fill()
        rest = self._data[self._start :]
        self.has_quotes = is_quoted_tsv(rest, longest=self._longest, is_end=self.is_end)
        self.settles_quotes = False

    def skip(self, records: Records) -> None:
        """Continue after records of `first`."""
        self._start = records.end
        self._line = records.end_line

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
                self._start = place
                self._fill()
                place = 0
            is_pair = self._data[place : place + 2].tobytes() == b"\r\n"
            self._start = place + 1 + is_pair
            return
