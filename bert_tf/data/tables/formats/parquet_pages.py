"""How long the values of a Parquet column can be, found without decoding any.

A dictionary or a shared prefix is stored once and decoded in every row: a file of a few kilobytes
may hold a hundred thousand rows of megabytes.
"""

from __future__ import annotations

from typing import BinaryIO

import pyarrow.parquet as pq

_HEADER_BYTES = 32  # three numbers of a page's header take less
_DICTIONARY_PAGE = 2
_FIELD_I32 = 0x15  # of Thrift's compact protocol: the next field, a 32-bit number


def largest_repeated_value(stream: BinaryIO, column: pq.ColumnChunkMetaData) -> int:
    """The most bytes of a value that is stored once and repeated in many rows; 0 if there is none.

    Args:
        stream: the file; its position is changed.
        column: of a row group.
    """
    if "DELTA_BYTE_ARRAY" in column.encodings:
        return int(column.total_uncompressed_size)
    offset = column.dictionary_page_offset if column.has_dictionary_page else None
    stream.seek(column.data_page_offset if offset is None else offset)
    kind, size = _page_header(stream.read(_HEADER_BYTES))
    return size if kind == _DICTIONARY_PAGE else 0


def _page_header(data: bytes) -> tuple[int, int]:
    """The type of a page and its uncompressed bytes (https://parquet.apache.org, PageHeader)."""
    numbers: list[int] = []
    position = 0
    while len(numbers) < 2:
        if data[position : position + 1] != bytes([_FIELD_I32]):
            return -1, 0  # no header: decoding it will fail
        number = shift = 0
        while True:
            position += 1
            byte = data[position] if position < len(data) else 0
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        numbers.append(number >> 1 ^ -(number & 1))
        position += 1
    return numbers[0], numbers[1]
