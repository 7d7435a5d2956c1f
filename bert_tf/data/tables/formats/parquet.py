"""Rows of Parquet files, with values as in JSON lines, in bounded memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.kernels import count_characters
from bert_tf.data.tables.dialect import INVALID_UTF8, TableDialect, compression_of
from bert_tf.data.tables.formats.delimited import ParsedRow, too_long
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.text_files import Opener, open_local

# Errors of a damaged file; names of columns that are not UTF-8 raise the last
DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError)
_BUFFER_BYTES = 8 << 20  # read from storage at once
_BATCH_ROWS = 1024  # rows decoded at once
_BATCH_BYTES = 16 << 20  # fewer rows where they are long
_REPEATED_BYTES = 512 << 20  # of a batch, if all its rows hold the longest value of a dictionary
_VALUE_BYTES = 16  # least memory of a decoded value, or of an item of a list
_BYTES_KINDS = (
    *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
    pa.types.is_fixed_size_binary,
)
_TEXT_KINDS = (  # bytes, too: some writers do not say that they are UTF-8
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    *_BYTES_KINDS,
)


@contextmanager
def open_parquet(path: str, opener: Opener) -> Iterator[tuple[BinaryIO, pq.ParquetFile]]:
    """Open a Parquet file; yield its bytes, and Arrow's reader of them.

    Raises:
        UsageError: the file cannot be opened, or is compressed as a whole.
        InputError: it is damaged, also while it is read, or is no Parquet file.
    """
    if compression_of(path) is not None:
        raise UsageError(
            f"{path}: Parquet needs random access, which a compressed file does not allow; "
            "decompress the file"
        )
    with opener(path) as stream:
        try:
            yield stream, pq.ParquetFile(stream, buffer_size=_BUFFER_BYTES)
        except DAMAGE as error:
            message = next(iter(str(error).splitlines()), type(error).__name__)
            raise InputError(
                f"{path}: cannot be read as Parquet ({message}); make or download it again"
            ) from None


def parquet_schema(path: str, dialect: TableDialect, opener: Opener) -> pa.Schema:
    """Read names and types of the columns.

    Raises:
        InputError: as `open_parquet`, or two columns have one name.
        UsageError: as `open_parquet`, or `--no-header` was given.
    """
    dialect.check_has_names(path, "columns of Parquet have names")
    with open_parquet(path, opener) as (_, file):
        schema = file.schema_arrow
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise InputError(
                f"{path}: column {name!r} appears twice; rename or remove one of the two"
            )
    return schema


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts, in a dictionary or not."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(is_kind(kind) for is_kind in _TEXT_KINDS)


def read_batches(
    stream: BinaryIO, file: pq.ParquetFile, group: int, columns: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a row group, without views, in batches of bounded memory.

    Args:
        stream: the bytes of the file, for the headers of pages.
        file: the same file as Arrow reads it.
        group: number of the row group, from 0.
        columns: names of the columns to decode, nested ones as a whole.
    """
    row_group = file.metadata.row_group(group)
    paths = tuple(f"{name}." for name in columns)
    leaves = [
        leaf
        for leaf in map(row_group.column, range(row_group.num_columns))
        if f"{leaf.path_in_schema}.".startswith(paths)
    ]
    rows = max(row_group.num_rows, 1)
    size = sum(leaf.total_uncompressed_size + _VALUE_BYTES * leaf.num_values for leaf in leaves)
    values_per_row = max((-(-leaf.num_values // rows) for leaf in leaves), default=1)
    repeated = sum(largest_repeated_value(stream, leaf) for leaf in leaves) * values_per_row
    most_rows = min(_BATCH_ROWS, _BATCH_BYTES // (size // rows + 1))
    batches = file.iter_batches(
        batch_size=max(min(most_rows, _REPEATED_BYTES // max(repeated, 1)), 1),
        row_groups=[group],
        columns=list(columns),
    )
    yield from map(batch_without_views, batches)


# A dictionary or a shared prefix is stored once and decoded in every row: a file of a few kilobytes
# may hold a hundred thousand rows of megabytes.
_HEADER_BYTES = 32  # three numbers of a page's header take less
_DICTIONARY_PAGE = 2  # of the enum PageType
_FIELD_I32 = 0x15  # of Thrift's compact protocol: the next field, a 32-bit number


def largest_repeated_value(stream: BinaryIO, column: pq.ColumnChunkMetaData) -> int:
    """Return the most bytes of a value that is stored once and repeated in many rows, 0 for none.

    It is an upper bound: the size of the dictionary, or of the column if prefixes are shared.

    Args:
        stream: the file; its position changes.
        column: metadata of a column of a row group.
    """
    if "DELTA_BYTE_ARRAY" in column.encodings:
        return int(column.total_uncompressed_size)
    offset = column.dictionary_page_offset if column.has_dictionary_page else None
    stream.seek(column.data_page_offset if offset is None else offset)
    kind, size = _page_header(stream.read(_HEADER_BYTES))
    return size if kind == _DICTIONARY_PAGE else 0


def _page_header(data: bytes) -> tuple[int, int]:
    """Read the type of a page and its uncompressed bytes.

    They are the first two fields of PageHeader (https://parquet.apache.org), in the compact
    protocol of Thrift: numbers with 7 bits per byte, the lowest first, and with the sign in the
    lowest bit of the number.

    Returns:
        The type and the number of bytes; -1 and 0 if there is no such header.
    """
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


# Arrow 25 reads and writes views of texts, bytes and lists, as Polars has them, but selects no rows
# of them and cannot slice them inside structs.
def is_view(kind: pa.DataType) -> bool:
    """Whether a type is a view of texts or bytes."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type with plain texts, bytes and lists in place of views, also in nested types."""
    return _mapped(kind, _without_view)


def batch_without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with plain columns in place of those that have views."""
    for index, field in enumerate(batch.schema):
        kind = without_views(field.type)
        if kind != field.type:
            column = batch.column(index)
            # Arrow only casts flat columns safely: casting a nested one can end the process.
            if is_view(field.type):
                plain = column.cast(kind)
            else:
                plain = pa.array(python_values(column), kind)
            batch = batch.set_column(index, field.with_type(kind), plain)
    return batch


def python_values(column: pa.Array) -> list[Any]:
    """Convert values to those of Python; times to texts if Python cannot hold one of them."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return list(column.cast(_mapped(column.type, _time_as_text)).to_pylist())


def _without_view(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def _time_as_text(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_temporal(kind) else kind


def _mapped(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Apply a change to all flat types inside a type, and replace views of lists by lists."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([field.with_type(_mapped(field.type, change)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_mapped(kind.key_type, change), _mapped(kind.item_type, change))
    if not types.is_nested(kind) or types.is_union(kind):
        return change(kind)
    item = kind.value_field.with_type(_mapped(kind.value_type, change))
    if types.is_fixed_size_list(kind):
        return pa.list_(item, kind.list_size)
    is_large = types.is_large_list(kind) or types.is_large_list_view(kind)
    return pa.large_list(item) if is_large else pa.list_(item)


def read_parquet_rows(
    path: str | Path,
    dialect: TableDialect,
    opener: Opener = open_local,
    *,
    columns: Sequence[str],
    needed: Collection[str],
) -> Iterator[ParsedRow]:
    """Yield rows with their number from 1, as JSON text and as values by column.

    Dates, times and decimals become texts as Arrow writes them. Bytes become base64 (RFC 4648,
    section 4), in all rows of a column alike. In needed columns bytes must be UTF-8; other bytes
    reject the row.

    Args:
        path: the file.
        dialect: the limit of characters, which holds for each needed column.
        opener: opens the file, which may be on other storage.
        columns: names of the columns to read.
        needed: names of the needed columns, all among `columns`.

    Raises:
        InputError, UsageError: as `open_parquet`.
    """
    first = 1
    with open_parquet(str(path), opener) as (stream, file):
        for group in range(file.num_row_groups):
            for batch in read_batches(stream, file, group, columns):
                values = []
                for name in columns:
                    convert = _values if name in needed else _json_values
                    values.append(convert(batch.column(name)))
                # A table may have rows but no columns.
                cells = zip(*values, strict=True) if values else ((),) * batch.num_rows
                for number, row_cells in enumerate(cells, first):
                    row = dict(zip(columns, row_cells, strict=True))
                    yield _row_or_reject(path, number, row, needed, dialect)
                first += batch.num_rows


def _row_or_reject(
    path: str | Path,
    number: int,
    row: dict[str, Any],
    needed: Collection[str],
    dialect: TableDialect,
) -> ParsedRow:
    """Make a row, or a reject if a needed column is too long or not UTF-8."""
    for name in needed:
        value = row[name]
        if isinstance(value, str | bytes) and _characters(value) > dialect.max_row_characters:
            return number, "", too_long(path, number, dialect)
        if isinstance(value, bytes):
            return number, "", Reject(str(path), number, INVALID_UTF8, f"column {name!r}")
    return number, json.dumps(row, ensure_ascii=False, default=_json_value), row


def _characters(value: str | bytes) -> int:
    if isinstance(value, str):
        return len(value)
    return int(count_characters(np.frombuffer(value, np.uint8), 0, len(value)))


def _json_value(value: Any) -> str:
    """Write values without a type in JSON: bytes as base64, others as their text."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _json_values(column: pa.Array) -> list[Any]:
    """Convert a column that is not needed; bytes become base64, even if they are UTF-8."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if any(is_kind(kind) for is_kind in _BYTES_KINDS):
        stored = column.cast(pa.large_binary()).to_pylist()
        return [None if value is None else _json_value(value) for value in stored]
    values = _values(column)
    return [_json_value(value) if isinstance(value, bytes) else value for value in values]


def _values(column: pa.Array) -> list[Any]:
    """Convert a column to Python values; bytes that are not UTF-8 stay bytes.

    Texts are checked for all rows at once, which is faster than one by one.
    """
    if isinstance(column, pa.ExtensionArray):  # UUIDs and the like, as Python writes them
        return list(column.to_pylist())
    if not is_text(column.type):
        types = pa.types
        is_number = types.is_integer(column.type) or types.is_floating(column.type)
        is_other = types.is_boolean(column.type) or types.is_nested(column.type)
        is_json = is_number or is_other or types.is_null(column.type)
        return python_values(column if is_json else column.cast(pa.string()))
    stored = column.cast(pa.large_binary())
    texts = pa.Array.from_buffers(
        pa.large_string(), len(stored), stored.buffers(), offset=stored.offset
    )
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return [_text_or_bytes(value) for value in stored.to_pylist()]
    return list(texts.to_numpy(zero_copy_only=False).tolist())


def _text_or_bytes(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return value
