"""Rows of JSON lines files: one object a line; bad lines do not end the reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.delimited import ParsedRow, too_long
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.text_files import (
    CutLine,
    Opener,
    bounded_lines,
    has_surrogates,
    open_local,
    open_text,
)

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json_rows(
    path: str | Path, dialect: TableDialect, opener: Opener = open_local
) -> Iterator[ParsedRow]:
    """Yields the objects of a JSON lines file; blank lines are no rows.

    Raises:
        InputError: the file is one JSON array or one object over many lines.
        UsageError: the file cannot be read, or was said to have no header.
    """
    if not dialect.has_header:
        raise UsageError(f"{path}: --no-header is for CSV and TSV; rows of JSON lines have keys")
    with open_text(path, newline="\n", encoding=dialect.encoding, opener=opener) as stream:
        seen = False
        lines = bounded_lines(stream, dialect.max_row_characters, newline="\n")
        for number, line in enumerate(lines, start=1):
            if isinstance(line, CutLine):
                seen = True
                yield number, "", too_long(path, number, dialect)
                continue
            raw = line.strip()
            if not raw:
                continue
            if not seen and raw in ("{", "["):
                raise InputError(
                    f"{path}: is one JSON value over many lines; "
                    "expected an object a line (jq -c '.[]' makes them from an array)"
                )
            seen = True
            yield number, raw, _object_or_reject(path, number, raw, dialect)
        if not seen:
            raise InputError(f"{path}: is empty; expected a JSON object a line")


def _object_or_reject(
    path: str | Path, line: int, raw: str, dialect: TableDialect
) -> dict[str, Any] | Reject:
    source = str(path)
    if has_surrogates(raw):
        return Reject(source, line, dialect.not_text)
    try:
        value = json.loads(raw, object_pairs_hook=_unique_keys)
    except _DuplicateKeyError as error:
        return Reject(source, line, "key stands there twice", str(error))
    except (ValueError, RecursionError) as error:
        return Reject(source, line, "not JSON", str(error))
    if not isinstance(value, dict):
        return Reject(source, line, "not a JSON object", f"a {type(value).__name__}")
    if _ESCAPED_SURROGATE.search(raw) and has_surrogates(json.dumps(value, ensure_ascii=False)):
        return Reject(source, line, "half of a surrogate pair")
    return value


class _DuplicateKeyError(Exception):
    """An object has a key twice, so which value is meant is unknown."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _DuplicateKeyError(repr(next(key for key in keys if keys.count(key) > 1)))
    return built
