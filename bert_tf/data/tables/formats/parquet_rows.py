"""Rows of Parquet files with the values that JSON lines of them would have."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.base.kernels import count_characters
from bert_tf.data.tables.dialect import INVALID_UTF8, TableDialect
from bert_tf.data.tables.formats.delimited import ParsedRow, too_long
from bert_tf.data.tables.formats.parquet_file import is_text, open_parquet, read_batches
from bert_tf.data.tables.formats.parquet_types import python_values
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.text_files import Opener, open_local

_KINDS_OF_JSON = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_nested,
    pa.types.is_null,
)


def read_parquet_rows(
    path: str | Path,
    dialect: TableDialect,
    opener: Opener = open_local,
    *,
    columns: Sequence[str],
    needed: Collection[str],
) -> Iterator[ParsedRow]:
    """Yields rows with their number from 1, as JSON text and as values by column.

    Texts, numbers, truth values, lists and structs are those of JSON; dates, times and decimals are
    texts as Arrow writes them. Bytes that are not UTF-8 are base64 (RFC 4648, section 4).

    Args:
        path: the file.
        dialect: the limit, which holds for each needed column.
        opener: opens the file, which may be on other storage.
        columns: those to read.
        needed: those of them in which bytes that are not UTF-8 reject the row.

    Raises:
        InputError: the file is damaged.
        UsageError: it cannot be read.
    """
    first = 1
    with open_parquet(str(path), opener) as (stream, file):
        for group in range(file.num_row_groups):
            for batch in read_batches(stream, file, group, columns):
                values = [_values(batch.column(name)) for name in columns]
                for name, column in zip(columns, values, strict=True):
                    if name not in needed:
                        column[:] = map(_without_bytes, column)
                cells = zip(*values, strict=True) if values else ((),) * batch.num_rows
                for number, row in enumerate(cells, first):
                    yield _parsed(
                        path, number, dict(zip(columns, row, strict=True)), needed, dialect
                    )
                first += batch.num_rows


def _parsed(
    path: str | Path,
    number: int,
    row: dict[str, Any],
    needed: Collection[str],
    dialect: TableDialect,
) -> ParsedRow:
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


def _without_bytes(value: Any) -> Any:
    return _json_value(value) if isinstance(value, bytes) else value


def _json_value(value: Any) -> str:
    """What JSON has no type for, as text."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _values(column: pa.Array) -> list[Any]:
    """Python values; bytes that are not UTF-8 stay bytes."""
    if isinstance(column, pa.ExtensionArray):  # UUIDs and the like, as Python writes them
        return list(column.to_pylist())
    if not is_text(column.type):
        is_json = any(is_kind(column.type) for is_kind in _KINDS_OF_JSON)
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
