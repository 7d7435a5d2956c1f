"""Rows of Parquet files with the values that JSON lines of them would have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.delimited import ParsedRow, too_long
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.parquet_file import is_text, open_parquet, read_batches
from bert_tf.data.tables.reasons import INVALID_UTF8
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.text_files import Opener, open_local

_KINDS_OF_JSON = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_nested,
    pa.types.is_null,
)


def parquet_columns(
    path: str | Path, dialect: TableDialect, opener: Opener = open_local
) -> tuple[str, ...]:
    """The names of a file's columns.

    Raises:
        InputError: the file is damaged, or has two columns of one name.
        UsageError: it cannot be read, or was said to have no header.
    """
    if not dialect.has_header:
        raise UsageError(f"{path}: --no-header is for CSV and TSV; columns of Parquet have names")
    with open_parquet(str(path), opener) as (_, file):
        names = tuple(file.schema_arrow.names)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path}: has two columns {name!r}; rename or remove one of the two")
    return names


def read_parquet_rows(
    path: str | Path,
    dialect: TableDialect,
    opener: Opener = open_local,
    *,
    columns: Sequence[str],
) -> Iterator[ParsedRow]:
    """Yields rows with their number from 1, as JSON text and as values by column.

    Texts, numbers, truth values, lists and structs are those of JSON; dates, times and decimals are
    texts as Arrow writes them.

    Args:
        path: the file.
        dialect: the limits.
        opener: opens the file, which may be on other storage.
        columns: those to read.

    Raises:
        InputError: the file is damaged.
        UsageError: it cannot be read.
    """
    first = 1
    with open_parquet(str(path), opener) as (stream, file):
        for group in range(file.num_row_groups):
            for batch in read_batches(stream, file, group, columns):
                values = [_values(batch.column(name)) for name in columns]
                cells = zip(*values, strict=True) if values else ((),) * batch.num_rows
                for number, row in enumerate(cells, first):
                    yield _parsed(path, number, dict(zip(columns, row, strict=True)), dialect)
                first += batch.num_rows


def _parsed(path: str | Path, number: int, row: dict[str, Any], dialect: TableDialect) -> ParsedRow:
    for name, value in row.items():
        if isinstance(value, bytes):
            return number, "", Reject(str(path), number, INVALID_UTF8, f"column {name!r}")
    raw = json.dumps(row, ensure_ascii=False, default=str)
    if len(raw) > dialect.max_row_characters:
        return number, "", too_long(path, number, dialect)
    return number, raw, row


def _values(column: pa.Array) -> list[Any]:
    """Python values; bytes that are not UTF-8 stay bytes."""
    if not is_text(column.type):
        is_json = any(is_kind(column.type) for is_kind in _KINDS_OF_JSON)
        return list((column if is_json else column.cast(pa.string())).to_pylist())
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
