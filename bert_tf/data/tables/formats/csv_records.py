"""Find the records and fields of CSV (RFC 4180) and TSV bytes, broken ones included.

Where a quote is missing, a parser that reads up to the next quote takes many rows for one cell.
Here only the first line of such a record is broken, so that a bad quote costs a single row. The
loops are compiled by Numba.
"""

from __future__ import annotations

import dataclasses
from enum import IntEnum

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.base.kernels import count_characters
from bert_tf.config.sections.tables import RowSection
from bert_tf.data.tables.rejects import QUOTE_NOT_CLOSED, TEXT_AFTER_QUOTE, TOO_LONG

_QUOTE = ord('"')
_LINE_FEED = ord("\n")
_RETURN = ord("\r")


class RecordFault(IntEnum):
    """Faults of a record."""

    SOUND = 0
    OPEN_AT_END = 1  # an open quote that later bytes may close
    TEXT_FOLLOWING_QUOTE = 2
    # Also a quote closed on a later line and followed by text: it is the opening one of another
    # row.
    NEVER_CLOSED = 3
    LONG_RECORD = 4


FAULT_REASONS: dict[int, str] = {
    RecordFault.OPEN_AT_END: QUOTE_NOT_CLOSED,
    RecordFault.NEVER_CLOSED: QUOTE_NOT_CLOSED,
    RecordFault.TEXT_FOLLOWING_QUOTE: TEXT_AFTER_QUOTE,
    RecordFault.LONG_RECORD: TOO_LONG,
}


@dataclasses.dataclass(frozen=True)
class Records:
    """Places of the records in some bytes; blank lines are not records."""

    offsets: np.ndarray  # int64 [records + 1] into fields; a broken record has none
    lines: np.ndarray  # int64 [records], first line of each, from 1
    starts: np.ndarray  # int64 [records], first byte of each
    # int64 [records], the byte after each, where its line end begins; for a broken record the byte
    # after its first line
    stops: np.ndarray
    faults: np.ndarray  # uint8 [records], of `RecordFault`
    field_starts: np.ndarray  # int64 [fields], without the opening quote
    field_stops: np.ndarray  # int64 [fields], without the closing quote
    blank_lines: int  # number of blank lines
    end: int  # the byte after these records, where the next one begins
    end_line: int  # the line of that byte, from 1
    is_cut_off: bool  # whether the line there is too long and does not end in the bytes


def find_records(
    data: np.ndarray,
    *,
    delimiter: int,
    has_quotes: bool,
    first_line: int = 1,
    start: int = 0,
    longest: int = RowSection.max_row_characters,
    most_records: int | None = None,
    is_end: bool = True,
) -> Records:
    """Find the records in bytes that begin with a record.

    A quoted field may hold delimiters and line ends, and quotes when they are doubled. Only a
    delimiter or a line end may follow its closing quote. If something else follows, or if the
    record is longer than `longest`, its first line becomes a broken record and the next line begins
    a new one, so that a bad quote does not swallow the rest of the file. Lines of CSV end with LF,
    CR or CRLF; lines of TSV end with LF or CRLF. A line of spaces and tabs is blank, unless one of
    these is the delimiter.

    Args:
        data: uint8.
        delimiter: the byte between fields.
        has_quotes: false for TSV, where quotes have no meaning.
        first_line: number of the line at `start`, from 1.
        start: the byte where the first record begins.
        longest: most characters of a record; longer ones are broken.
        most_records: number of records to find; None for all.
        is_end: whether the file ends with the bytes; if not, a last record that may continue is
            left out.
    """
    rest = data[start:]
    ends = int(np.count_nonzero(rest == _LINE_FEED)) + 1
    if has_quotes:
        ends += int(np.count_nonzero(rest == _RETURN))
    delimiters = int(np.count_nonzero(rest == delimiter))
    capacity = ends if most_records is None else min(ends, most_records)
    starts, stops, lines = np.empty((3, capacity), np.int64)
    offsets = np.empty(capacity + 1, np.int64)
    faults = np.empty(capacity, np.uint8)
    field_starts, field_stops = np.empty((2, capacity + delimiters + 1), np.int64)
    arrays = offsets, lines, starts, stops, faults, field_starts, field_stops
    count, fields, blank_lines, end, end_line, is_cut_off = _find(
        rest, delimiter, has_quotes, first_line, longest, is_end, arrays
    )
    if start:
        for places in (starts[:count], stops[:count], field_starts[:fields], field_stops[:fields]):
            places += start
    return Records(
        offsets=offsets[: count + 1],
        lines=lines[:count],
        starts=starts[:count],
        stops=stops[:count],
        faults=faults[:count],
        field_starts=field_starts[:fields],
        field_stops=field_stops[:fields],
        blank_lines=blank_lines,
        end=start + end,
        end_line=end_line,
        is_cut_off=bool(is_cut_off),
    )


@numba.njit(cache=True, nogil=True)
def _find(data, delimiter, has_quotes, line, longest, is_end, ends):
    """Fill the arrays of `find_records`.

    A record that may continue after the bytes is given up: `fields` and `position` return to its
    beginning, and a later call finds it again with more bytes.

    Args:
        ends: arrays to fill: offsets, lines, starts, stops, faults, field_starts, field_stops.

    Returns:
        The number of records, of fields and of blank lines; position and line after the last
        record; and whether the line there is too long and does not end in the bytes.
    """
    offsets, lines, starts, stops, faults, field_starts, field_stops = ends
    records = fields = blank_lines = position = 0
    is_cut_off = False
    offsets[0] = 0
    size = len(data)
    line_end = _RETURN if has_quotes else _LINE_FEED
    while position < size and records < len(starts):
        after = _after_blank_line(data, position, delimiter, has_quotes, is_end)
        if after > position:
            blank_lines += 1
            line += 1
            position = after
            continue
        if after < 0:
            break
        start = position
        first_field = fields
        position, stop, fields, fault, line_ends = _read_fields(
            data, start, delimiter, has_quotes, longest, fields, field_starts, field_stops
        )
        is_longer = _is_longer(data, start, position, longest)
        may_be_closed = fault == RecordFault.OPEN_AT_END and not is_end and not is_longer
        record_stop = position if has_quotes else stop
        if fault != RecordFault.SOUND or is_longer:
            position = _plain_end(data, start, line_end, line_end)
            if _is_longer(data, start, position, longest):
                fault = RecordFault.LONG_RECORD
            elif is_longer:
                fault = RecordFault.NEVER_CLOSED
            fields = first_field
            line_ends = 0
            record_stop = position
        after = _after_line_end(data, position)
        if not is_end and (
            may_be_closed or after == position or (after == size and data[after - 1] == _RETURN)
        ):
            is_cut_off = fault == RecordFault.LONG_RECORD and after == position
            fields = first_field
            position = start
            break
        lines[records] = line
        starts[records] = start
        stops[records] = record_stop
        faults[records] = fault
        position = after
        line += line_ends + 1
        records += 1
        offsets[records] = fields
    return records, fields, blank_lines, position, line, is_cut_off


@numba.njit(cache=True, inline="always")
def _read_fields(data, position, delimiter, has_quotes, longest, fields, field_starts, field_stops):
    """Fill in the fields of a record, up to its first fault.

    Args:
        data: uint8.
        position: byte where the record begins.
        delimiter: the byte between fields.
        has_quotes: false for TSV.
        longest: characters of a record.
        fields: number of the record's first field.
        field_starts: int64, filled from `fields` on, without the opening quotes.
        field_stops: int64, filled from `fields` on, without the closing quotes.

    Returns:
        The byte after the record, before its line end; the byte after the content of its last
        field; the number after that of this field; the fault; and the line ends inside quotes.
    """
    start = position
    line_end = _RETURN if has_quotes else _LINE_FEED
    fault = RecordFault.SOUND
    line_ends = 0
    while True:
        if has_quotes and position < len(data) and data[position] == _QUOTE:
            begin, position, fault, inside = _quoted(data, position, start, longest)
            line_ends += inside
            stop = position - 1
            if fault == RecordFault.SOUND and not _ends_field(data, position, delimiter):
                fault = RecordFault.NEVER_CLOSED if line_ends else RecordFault.TEXT_FOLLOWING_QUOTE
            if fault != RecordFault.SOUND:
                break
        else:
            begin = position
            position = _plain_end(data, position, delimiter, line_end)
            stop = position
            is_line_end = position == len(data) or data[position] == _LINE_FEED
            if not has_quotes and is_line_end and stop > begin and data[stop - 1] == _RETURN:
                stop -= 1
        field_starts[fields] = begin
        field_stops[fields] = stop
        fields += 1
        if position == len(data) or data[position] != delimiter:
            break
        position += 1
    return position, stop, fields, fault, line_ends


@numba.njit(cache=True, inline="always")
def _plain_end(data, position, delimiter, line_end):
    """Return where a field without quotes ends: at a delimiter, at a line end or after the data."""
    while (
        position < len(data)
        and data[position] != delimiter
        and data[position] != _LINE_FEED
        and data[position] != line_end
    ):
        position += 1
    return position


@numba.njit(cache=True, inline="always")
def _after_line_end(data, position):
    """Return the position after the line end at a position; the same position if there is none."""
    if position < len(data) and data[position] == _RETURN:
        position += 1
    if position < len(data) and data[position] == _LINE_FEED:
        position += 1
    return position


@numba.njit(cache=True, inline="always")
def _after_blank_line(data, position, delimiter, has_quotes, is_end):
    """Return the position after a blank line; 0 if it is not blank, -1 if it may become one."""
    size = len(data)
    while position < size and _is_blank(data[position], delimiter, has_quotes):
        position += 1
    if position == size:
        return size if is_end else -1
    if data[position] != _LINE_FEED and not (has_quotes and data[position] == _RETURN):
        return 0
    after = _after_line_end(data, position)
    return -1 if after == size and data[after - 1] == _RETURN and not is_end else after


@numba.njit(cache=True, inline="always")
def _is_blank(byte, delimiter, has_quotes):
    is_return = byte == _RETURN and not has_quotes  # in TSV, part of the line end or of the text
    return byte != delimiter and (byte == ord(" ") or byte == ord("\t") or is_return)


@numba.njit(cache=True, inline="always")
def _ends_field(data, position, delimiter):
    """Whether a field can end here: at a delimiter, a line end, or the end of the bytes."""
    if position >= len(data) or data[position] == delimiter:
        return True
    return data[position] == _LINE_FEED or data[position] == _RETURN


@numba.njit(cache=True, inline="always")
def _is_longer(data, start, stop, longest):
    """Whether there are more than `longest` characters; counted only if there are more bytes."""
    if stop - start <= longest:
        return False
    return count_characters(data, start, stop) > longest


@numba.njit(cache=True)
def _quoted(data, position, record_start, longest):
    """Find the end of a quoted field.

    Args:
        data: uint8.
        position: of the opening quote.
        record_start: where its record begins, from which characters count.
        longest: characters of a record.

    Returns:
        The byte where the content begins, the byte after the closing quote, the fault
        (`NEVER_CLOSED` if the record gets too long), and the line ends in the content.
    """
    begin = position + 1
    position = begin
    line_ends = 0
    size = len(data)
    # At byte `last` the record has at most `longest` characters. Bytes that continue a character of
    # UTF-8 do not count, so `last` moves by their number; those before `counted` are counted.
    counted = record_start
    last = record_start + longest
    while position < size:
        if position >= last:
            continuation = last - counted - count_characters(data, counted, last)
            if continuation == 0:
                return begin, position, RecordFault.NEVER_CLOSED, line_ends
            counted = last
            last += continuation
        stop = min(size, last)
        while position < stop:
            byte = data[position]
            if byte > _QUOTE:
                position += 1
            elif byte == _QUOTE:
                if position + 1 == size or data[position + 1] != _QUOTE:
                    return begin, position + 1, RecordFault.SOUND, line_ends
                position += 2
            else:
                if byte == _LINE_FEED:
                    line_ends += 1
                is_return = byte == _RETURN and position + 1 < size
                if is_return and data[position + 1] != _LINE_FEED:
                    line_ends += 1
                position += 1
    return begin, position, RecordFault.OPEN_AT_END, line_ends


def field_bytes(
    data: np.ndarray, records: Records, fields: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Copy the content of fields, unquoted.

    Args:
        data: uint8.
        records: found in `data`.
        fields: int [n], numbers of fields.

    Returns:
        The bytes of all fields, uint8, and offsets into them, int64 [n + 1].
    """
    starts = records.field_starts[fields]
    stops = records.field_stops[fields]
    copied = np.empty(int((stops - starts).sum()), np.uint8)
    offsets = np.zeros(len(starts) + 1, np.int64)
    _unquote(data, starts, stops, copied, offsets)
    return copied[: offsets[-1]], offsets


@numba.njit(cache=True, nogil=True)
def _unquote(data, starts, stops, copied, offsets):
    """Fill `copied` and `offsets` of `field_bytes`; copy the first of two doubled quotes."""
    written = 0
    for field in range(len(starts)):
        position = starts[field]
        stop = stops[field]
        was_quoted = position > 0 and data[position - 1] == _QUOTE
        while position < stop:
            copied[written] = data[position]
            written += 1
            if was_quoted and data[position] == _QUOTE:
                position += 1
            position += 1
        offsets[field + 1] = written


def count_line_ends(data: np.ndarray) -> int:
    """Return the number of line ends of CSV in bytes, uint8: LF, CR, and both together as one."""
    is_return = data == _RETURN
    is_feed = data == _LINE_FEED
    pairs = int(np.count_nonzero(is_return[:-1] & is_feed[1:]))
    return int(np.count_nonzero(is_feed)) + int(np.count_nonzero(is_return)) - pairs
