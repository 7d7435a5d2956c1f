"""Ranges of bytes: split into lines, and copied into Arrow strings."""

from __future__ import annotations

import numba
import numpy as np
import pyarrow as pa

from bert_tf.base.arrays import offsets_of
from bert_tf.base.errors import InputError
from bert_tf.base.kernels import take_ranges

_MOST_BYTES = np.iinfo(np.int32).max


def gather(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> pa.Array:
    """Copies ranges of UTF-8 into an Arrow string array, whose offsets have 32 bits.

    Raises:
        InputError: that is 2 GiB or more.
    """
    wide_offsets = offsets_of(stops - starts)
    if wide_offsets[-1] > _MOST_BYTES:
        raise InputError(
            f"a block has {wide_offsets[-1]:,} bytes of text, at most {_MOST_BYTES:,} fit; lower "
            "block_megabytes, or cut documents of such a size"
        )
    offsets = wide_offsets.astype(np.int32)
    gathered = take_ranges(data, starts, stops - starts)
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(gathered))


def split_lines(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Splits texts at line ends: LF, CR, CRLF, VT, FF, and Unicode's line and paragraph separators.

    Returns:
        Starts and stops of the lines and the text of each, int64 [lines] each; a text has at least
        one line.
    """
    capacity = len(starts) + int(_count_line_ends(data, starts, stops))
    line_starts = np.empty(capacity, np.int64)
    line_stops = np.empty(capacity, np.int64)
    text_of_line = np.empty(capacity, np.int64)
    found = _split_lines(data, starts, stops, line_starts, line_stops, text_of_line)
    return line_starts[:found], line_stops[:found], text_of_line[:found]


@numba.njit(cache=True, nogil=True)
def _count_line_ends(data, starts, stops):
    count = 0
    for text in range(len(starts)):
        for position in range(starts[text], stops[text]):
            byte = data[position]
            count += 10 <= byte <= 13 or byte == 0xC2 or byte == 0xE2
    return count


@numba.njit(cache=True, nogil=True)
def _split_lines(data, starts, stops, line_starts, line_stops, text_of_line):
    found = 0
    for text in range(len(starts)):
        begin = position = starts[text]
        stop = stops[text]
        while position < stop:
            width = _line_end_width(data, position, stop)
            if width:
                line_starts[found], line_stops[found] = begin, position
                text_of_line[found] = text
                found += 1
                begin = position + width
            position += max(width, 1)
        line_starts[found], line_stops[found] = begin, stop
        text_of_line[found] = text
        found += 1
    return found


@numba.njit(cache=True, inline="always")
def _line_end_width(data, position, stop):
    byte = data[position]
    if byte == 13 and position + 1 < stop and data[position + 1] == 10:
        return 2
    if 10 <= byte <= 13:
        return 1
    if byte == 0xC2 and position + 1 < stop and data[position + 1] == 0x85:
        return 2
    if byte == 0xE2 and position + 2 < stop and data[position + 1] == 0x80:
        return 3 if data[position + 2] == 0xA8 or data[position + 2] == 0xA9 else 0
    return 0
