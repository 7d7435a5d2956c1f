"""Rows of JSON lines files: one object per line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
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
_LINE_STARTS = f"{JSON_BLANKS}\ufeff"  # the mark of a file that was joined to another
_SPLIT_TABLE = {"columns", "index", "data"}
_TABLE_WITH_SCHEMA = {"schema", "data"}
# MongoDB's Extended JSON, as mongoexport writes values whose type JSON does not have:
# https://www.mongodb.com/docs/manual/reference/mongodb-extended-json
_EXTENDED_NUMBERS: dict[str, Callable[[str], int | float]] = {
    "$numberInt": int, "$numberLong": int, "$numberDouble": float, "$numberDecimal": float,
}  # fmt: skip
_EXTENDED_TEXTS = frozenset(("$oid", "$date", "$symbol", "$uuid"))
KEYS_ARE_NAMES = "rows of JSON lines have keys"


def read_json_rows(
    path: str | Path, dialect: TableDialect, opener: Opener = open_local
) -> Iterator[ParsedRow]:
    """Yield the objects of a JSON lines file; skip blank lines, and turn bad lines into rejects.

    Args:
        path: the file.
        dialect: encoding, and the most characters of a line.
        opener: opens the file, which may be on other storage.

    Raises:
        NoRowsError: the file is empty.
        InputError: it is one JSON list, or one object that holds a whole table.
        UsageError: it cannot be read, or `--no-header` was given.
    """
    dialect.check_has_names(path, KEYS_ARE_NAMES)
    rows = _parsed_rows(path, dialect, opener)
    first_two = list(itertools.islice(rows, 2))
    if len(first_two) == 1:
        _, _, only = first_two[0]
        if isinstance(only, dict):
            _check_is_row(path, only)
    yield from itertools.chain(first_two, rows)


def _parsed_rows(path: str | Path, dialect: TableDialect, opener: Opener) -> Iterator[ParsedRow]:
    """Yield the lines that are not blank, as objects or rejects."""
    with open_text(path, newline="\n", encoding=dialect.encoding, opener=opener) as stream:
        is_empty = True
        lines = bounded_lines(stream, dialect.max_row_characters)
        for number, line in enumerate(lines, start=1):
            if isinstance(line, CutLine):
                yield number, "", too_long(path, number, dialect)
            elif raw := line.lstrip(_LINE_STARTS).rstrip(JSON_BLANKS):
                if is_empty:
                    check_first_line(path, raw)
                yield number, raw, _object_or_reject(path, number, raw, dialect)
            else:
                continue
            is_empty = False
        if is_empty:
            raise NoRowsError(f"{path}: is empty; expected a JSON object per line")


def _check_is_row(path: str | Path, only: dict[str, Any]) -> None:
    """Raise InputError if the only object of a file holds a whole table, as pandas writes it."""
    pandas = "df.to_json(path, orient='records', lines=True)"
    if only.keys() in (_SPLIT_TABLE, _TABLE_WITH_SCHEMA):
        kind = "a table of pandas"
        remedy = f"pandas writes these by {pandas}"
    elif _has_lists_of_texts(only):
        kind = "a table by columns"
        remedy = f"pandas.DataFrame(json.load(file)) and then {pandas}"
    elif len(only) < 2 or not all(isinstance(value, dict) for value in only.values()):
        return
    elif _has_columns(only):
        kind = "a table by columns, as pandas writes it"
        remedy = f"it writes these by {pandas}"
    else:
        kind = "rows by their keys"
        remedy = f"jq -c '.[]' makes them, and pandas writes them by {pandas}"
    raise InputError(f"{path}: is one JSON object, {kind}; expected an object per line ({remedy})")


def _has_lists_of_texts(only: dict[str, Any]) -> bool:
    """Whether all values are lists of one length, one of them texts of several words.

    A sentence has lists, too: of its words and tags.
    """
    columns = list(only.values())
    if len(columns) < 2 or not all(isinstance(column, list) for column in columns):
        return False
    length = len(columns[0])
    if length < 2 or any(len(column) != length for column in columns):
        return False
    return any(all(map(_has_several_words, column)) for column in columns)


def _has_several_words(cell: Any) -> bool:
    return isinstance(cell, str) and " " in cell.strip()


def _has_columns(table: dict[str, dict[str, Any]]) -> bool:
    """Whether objects in an object are columns with their cells, not rows with their columns."""
    keys = {tuple(inner) for inner in table.values()}
    if len(keys) != 1:
        return False
    (names,) = keys
    return all(map(str.isdecimal, names)) or len(names) > len(table)


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
    """Raise InputError if the first line begins one list or one object over many lines.

    Args:
        path: named in the error.
        line: the first line that is not blank, without blanks around it.
    """
    inside = line[1:].lstrip(JSON_BLANKS) if line[:1] == "[" else ""
    if inside[:1] == "[" and inside[1:].lstrip(JSON_BLANKS)[:1] not in ("[", ""):
        raise InputError(
            f"{path}: is one JSON list of lists, whose columns have no names; expected an object "
            "per line (in CSV, such rows are read with --no-header)"
        )
    if line in ("{", "[") or inside[:1] == "{":
        kind = "list" if line[0] == "[" else "value over many lines"
        raise InputError(
            f"{path}: is one JSON {kind}; expected an object per line (jq -c '.[]' makes them from "
            "a list)"
        )


class RowError(Exception):
    """A line cannot be used as a row.

    Args:
        reason: reason of the reject.
        detail: detail of the reject.
    """

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def parse_object(raw: str) -> dict[str, Any]:
    """Parse a line of JSON.

    Args:
        raw: the line, without lone surrogates.

    Raises:
        RowError: it is not an object, has a key twice, or has text that is not Unicode.
    """
    try:
        value = json.loads(raw, object_pairs_hook=_unique_keys)
        if escapes_surrogates(raw, value):
            raise RowError(LONE_SURROGATE)
    except (ValueError, RecursionError) as error:
        raise RowError(NOT_JSON, str(error)) from None
    if not isinstance(value, dict):
        raise RowError(NOT_AN_OBJECT, f"a {type(value).__name__}")
    return value


def _extended_number(kind: str, written: Any) -> Any:
    """Return the number that an object of Extended JSON stands for; the object if it has none."""
    try:
        return _EXTENDED_NUMBERS[kind](written)
    except (TypeError, ValueError, OverflowError):  # of text, null, infinity
        return {kind: written}


def _unique_keys(pairs: list[tuple[str, Any]]) -> Any:
    """Build an object, or the value it stands for; raise RowError if a key is there twice."""
    if len(pairs) == 1 and pairs[0][0] in _EXTENDED_NUMBERS:
        return _extended_number(*pairs[0])
    if len(pairs) == 1 and pairs[0][0] in _EXTENDED_TEXTS and isinstance(pairs[0][1], str):
        return pairs[0][1]
    built = dict(pairs)
    if len(built) < len(pairs):  # nothing says which of the two values is meant
        keys = [key for key, _ in pairs]
        raise RowError(DUPLICATE_KEY, repr(next(key for key in keys if keys.count(key) > 1)))
    return built
