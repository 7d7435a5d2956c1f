"""Records of a delimited file in file order, in memory bounded by the longest allowed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from bert_tf.data.tables.formats.csv_records import Records, find_records

_CHUNK_BYTES = 1 << 20  # read at once
_MOST_RECORDS = 8192  # found at once


@dataclasses.dataclass(frozen=True)
class LongLine:
    """The line of a record that is longer than allowed, and has been skipped."""

    line: int


class RecordStream:
    """Finds the records of bytes that are read bit by bit.

    Args:
        read: the next bytes, at most so many; none at the end.
        has_quotes: whether quotes mean anything.
        longest: characters of a record.

    Attributes:
        has_quotes: may be set as long as no record has been skipped.
    """

    def __init__(self, read: Callable[[int], bytes], *, has_quotes: bool, longest: int):
        self._read = read
        self.has_quotes = has_quotes
        self._longest = longest
        self._data = np.zeros(0, np.uint8)
        self._start = 0
        self._line = 1
        self._is_end = False

    @property
    def is_end(self) -> bool:
        """Whether all bytes have been read."""
        return self._is_end

    def peek(self) -> np.ndarray:
        """uint8: the bytes from the next record on, with all of it unless it is too long."""
        while not self._is_end:
            records = self._find(ord(","), 1)
            if len(records.lines) or records.is_cut_off:
                break
            self._fill()
        return self._data[self._start :]

    def first(self, delimiter: str) -> tuple[np.ndarray, Records] | LongLine | None:
        """The next record alone, which stays the next one; None at the end of the file."""
        start, line = self._start, self._line
        for found in self.windows(delimiter, most_records=1):
            if not isinstance(found, LongLine):
                self._start, self._line = start, line
            return found
        return None

    def windows(
        self, delimiter: str, *, most_records: int = _MOST_RECORDS
    ) -> Iterator[tuple[np.ndarray, Records] | LongLine]:
        """Yields the records to the end of the file, and the bytes that they are in."""
        while True:
            records = self._find(ord(delimiter), most_records)
            self._start, self._line = records.end, records.end_line
            if len(records.lines):
                yield self._data, records
            elif records.is_cut_off:
                yield LongLine(self._line)
                self._skip_line()
                self._line += 1
            elif self._is_end:
                return
            else:
                self._fill()

    def skip_first(self, delimiter: str) -> None:
        """Continues after the next record."""
        found = self.first(delimiter)
        if found is not None and not isinstance(found, LongLine):
            self.skip(found[1])

    def skip(self, records: Records) -> None:
        """Continues after records of `first`."""
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
            is_end=self._is_end,
        )

    def _fill(self) -> None:
        rest = self._data[self._start :]
        more = self._read(max(_CHUNK_BYTES, len(rest)))
        self._is_end = not more
        self._data = np.concatenate([rest, np.frombuffer(more, np.uint8)])
        self._start = 0

    def _skip_line(self) -> None:
        """Drops what is left of the line, which does not end in the bytes read so far."""
        self._start = len(self._data)
        while not self._is_end:
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
                self._fill_after(place)
            is_pair = self._data[place : place + 2].tobytes() == b"\r\n"
            self._start = place + 1 + is_pair
            return

    def _fill_after(self, place: int) -> None:
        kept = self._data[: place + 1]
        self._start = len(self._data)
        self._fill()
        self._data = np.concatenate([kept, self._data])
