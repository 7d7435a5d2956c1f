"""Finds the records and fields of CSV (RFC 4180) and TSV bytes, whatever is broken among them."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np

from bert_tf.data.tables.reasons import QUOTE_NOT_CLOSED, TEXT_AFTER_QUOTE

_QUOTE = ord('"')
LONGEST_RECORD_BYTES = 64 << 20
# What is wrong with a record. A quote that ends the bytes may be closed by what follows them; one
# that is closed on a later line and followed by text has met the opening quote of another row.
SOUND, OPEN_AT_END, TEXT_FOLLOWING_QUOTE, OPEN_BEYOND_LINE = 0, 1, 2, 3
FAULT_REASONS = {
    OPEN_AT_END: QUOTE_NOT_CLOSED,
    OPEN_BEYOND_LINE: QUOTE_NOT_CLOSED,
    TEXT_FOLLOWING_QUOTE: TEXT_AFTER_QUOTE,
}


@dataclasses.dataclass(frozen=True)
class Records:
    """The records of some bytes; blank lines are none.

    Attributes:
        offsets: int64 [records + 1]; record r has the fields from `offsets[r]` on; a broken record
            has none.
        lines: int64 [records], where each begins, from 1.
        starts: int64 [records], the byte where each begins.
        faults: uint8 [records], SOUND, OPEN_AT_END, TEXT_FOLLOWING_QUOTE or OPEN_BEYOND_LINE.
        field_starts: int64 [fields], without the opening quote.
        field_stops: int64 [fields], without the closing quote.
        blank_lines: how many lines were blank.
    """

    offsets: np.ndarray
    lines: np.ndarray
    starts: np.ndarray
    faults: np.ndarray
    field_starts: np.ndarray
    field_stops: np.ndarray
    blank_lines: int


def find_records(data: np.ndarray, *, delimiter: int, has_quotes: bool, first_line: int) -> Records:
    """Finds records in bytes that begin with one.

    A quoted field may hold delimiters and line ends, and quotes when they are doubled. After its
    closing quote only a delimiter or a line end may come; where something else comes, or no closing
    quote within LONGEST_RECORD_BYTES, the record's first line is broken and the next line begins a
    record: one bad quote does not swallow the rest of the file.

    Args:
        data: uint8.
        delimiter: the byte between fields.
        has_quotes: whether quotes mean anything (they do not in TSV).
        first_line: number of the first line, from 1.
    """
    ends = int(np.count_nonzero(data == ord("\n"))) + 1
    records = (np.empty(ends + 1, np.int64), np.empty(ends, np.int64), np.empty(ends, np.int64))
    faults = np.empty(ends, np.uint8)
    room = ends + int(np.count_nonzero(data == delimiter))
    fields = np.empty(room, np.int64), np.empty(room, np.int64)
    found, found_fields, blank_lines = _find(
        data, delimiter, has_quotes, first_line, *records, faults, *fields
    )
    offsets, lines, starts = records
    return Records(
        offsets=offsets[: found + 1],
        lines=lines[:found],
        starts=starts[:found],
        faults=faults[:found],
        field_starts=fields[0][:found_fields],
        field_stops=fields[1][:found_fields],
        blank_lines=blank_lines,
    )


@numba.njit(cache=True, nogil=True)
def _find(
    data,
    delimiter,
    has_quotes,
    line,
    offsets,
    lines,
    starts,
    faults,
    field_starts,
    field_stops,
):
    records = fields = blank_lines = position = 0
    offsets[0] = 0
    size = len(data)
    while position < size:
        after = _end_of_line(data, position)
        if after:
            blank_lines += 1
            line += 1
            position = after
            continue
        start, first_field, fault, feeds = position, fields, SOUND, 0
        while True:
            if has_quotes and position < size and data[position] == _QUOTE:
                begin, position, fault, inside = _quoted(data, position, start)
                feeds += inside
                stop = position - 1
                if fault == SOUND and not _ends_field(data, position, delimiter):
                    fault = OPEN_BEYOND_LINE if feeds else TEXT_FOLLOWING_QUOTE
                if fault != SOUND:
                    break
            else:
                begin = position
                while position < size and data[position] != delimiter and data[position] != 10:
                    position += 1
                stop = position
                if stop > begin and data[stop - 1] == 13 and _at_end(data, position):
                    stop -= 1
            field_starts[fields], field_stops[fields] = begin, stop
            fields += 1
            if position < size and data[position] == delimiter:
                position += 1
                continue
            break
        lines[records], starts[records], faults[records] = line, start, fault
        if fault != SOUND:
            fields = first_field
            position = start
            while position < size and data[position] != 10:
                position += 1
            feeds = 0
        elif position < size and data[position] == 13:
            position += 1
        position += 1
        line += feeds + 1
        records += 1
        offsets[records] = fields
    return records, fields, blank_lines


@numba.njit(cache=True, inline="always")
def _at_end(data, position):
    return position >= len(data) or data[position] == 10


@numba.njit(cache=True, inline="always")
def _end_of_line(data, position):
    """The position after the line end at a position, 0 if none is there."""
    if data[position] == 10:
        return position + 1
    if data[position] == 13 and position + 1 < len(data) and data[position + 1] == 10:
        return position + 2
    return 0


@numba.njit(cache=True, inline="always")
def _ends_field(data, position, delimiter):
    if _at_end(data, position) or data[position] == delimiter:
        return True
    return data[position] == 13 and _at_end(data, position + 1)


@numba.njit(cache=True)
def _quoted(data, position, record_start):
    """Content start, the byte after the closing quote, the fault, and line feeds inside."""
    begin = position + 1
    position = begin
    feeds = 0
    last = min(len(data), record_start + LONGEST_RECORD_BYTES)
    while position < last:
        if data[position] == _QUOTE:
            if position + 1 < len(data) and data[position + 1] == _QUOTE:
                position += 2
                continue
            return begin, position + 1, SOUND, feeds
        feeds += data[position] == 10
        position += 1
    return begin, position, OPEN_AT_END, feeds


def unquote(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Copies fields, making doubled quotes single in those that were quoted.

    Args:
        data: uint8.
        starts: int64 [fields], as of `Records`.
        stops: int64 [fields].

    Returns:
        uint8 bytes, and int64 [fields + 1] offsets into them.
    """
    copied = np.empty(int((stops - starts).sum()), np.uint8)
    offsets = np.zeros(len(starts) + 1, np.int64)
    _unquote(data, starts, stops, copied, offsets)
    return copied[: offsets[-1]], offsets


@numba.njit(cache=True, nogil=True)
def _unquote(data, starts, stops, copied, offsets):
    written = 0
    for field in range(len(starts)):
        position, stop = starts[field], stops[field]
        was_quoted = position > 0 and data[position - 1] == _QUOTE
        while position < stop:
            copied[written] = data[position]
            written += 1
            position += 2 if was_quoted and data[position] == _QUOTE else 1
        offsets[field + 1] = written
