"""Rows of JSON lines files: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.errors import InputError, NoRowsError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.delimited import ParsedRow, too_long
from bert_tf.data.tables.rejects import (
    DUPLICATE_KEY,
    LONE_SURROGATE,
    NOT_AN_OBJECT,
    NOT_JSON,
    Reject,
)
from bert_tf.data.tables.text_files import (
    CutLine,
    Opener,
    bounded_lines,
    escapes_surrogates,
    has_surrogates,
    open_local,
    open_text,
)

JSON_BLANKS = " \t\r\n"  # https://www.rfc-editor.org/rfc/rfc8259, section 2
KEYS_ARE_NAMES = "rows of JSON lines have keys"


def read_json_rows(
    path: str | Path, dialect: TableDialect, opener: Opener = open_local
) -> Iterator[ParsedRow]:
    """Yield the objects of a JSON lines file; blank lines are not rows, bad lines are rejects."""
    dialect.check_has_names(path, KEYS_ARE_NAMES)
    with open_text(path, newline="\n", encoding=dialect.encoding, opener=opener) as stream:
        seen = False
        lines = bounded_lines(stream, dialect.max_row_characters)
        for number, line in enumerate(lines, start=1):
            if isinstance(line, CutLine):
                yield number, "", too_long(path, number, dialect)
            elif raw := line.strip(JSON_BLANKS):
                if not seen:
                    check_first_line(path, raw)
                yield number, raw, _object_or_reject(path, number, raw, dialect)
            else:
                continue
            seen = True
        if not seen:
            raise NoRowsError(f"{path}: is empty; expected a JSON object per line")


def _object_or_reject(
    path: str | Path, line: int, raw: str, dialect: TableDialect
) -> dict[str, Any] | Reject:
    if has_surrogates(raw):
        return Reject(str(path), line, dialect.invalid_text)
    try:
        return parse_object(raw)
    except RowError as error:
        return Reject(str(path), line, error.reason, error.detail)


def check_first_line(path: str | Path, line: str) -> None:
    """Raise InputError if the first line begins one list or one object over many lines."""
    is_list_of_objects = line[:1] == "[" and line[1:].lstrip(JSON_BLANKS)[:1] == "{"
    if line in ("{", "[") or is_list_of_objects:
        raise InputError(
            f"{path}: is one JSON {'list' if line[0] == '[' else 'value over many lines'}; "
            "expected an object per line (jq -c '.[]' makes them from a list)"
        )


class RowError(Exception):
    def __init__(self, reason: str, detail: str = ""):
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def parse_object(raw: str) -> dict[str, Any]:
    """Parse a JSON line; raise RowError for no object, a key twice, or text that is not Unicode."""
    try:
        value = json.loads(raw, object_pairs_hook=_unique_keys)
        if escapes_surrogates(raw, value):
            raise RowError(LONE_SURROGATE)
    except (ValueError, RecursionError) as error:
        raise RowError(NOT_JSON, str(error)) from None
    if not isinstance(value, dict):
        raise RowError(NOT_AN_OBJECT, f"a {type(value).__name__}")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):  # which value is meant is unknown
        keys = [key for key, _ in pairs]
        raise RowError(DUPLICATE_KEY, repr(next(key for key in keys if keys.count(key) > 1)))
    return built
