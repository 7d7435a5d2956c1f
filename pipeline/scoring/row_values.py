"""Which type each column of a Parquet file has, where rows were cells or JSON values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

_TYPES = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "long": pa.int64(),
    "number": pa.float64(),
    "text": pa.string(),
}
_LARGEST_EXACT = 1 << 53  # of a float64
_LARGEST_INTEGER = 1 << 63


def kinds_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The kinds of values in each column, sorted; none of a column of nulls."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for key, value in row.items():
            found = kinds.setdefault(key, set())
            if value is not None:
                found.add(_kind(value))
    return {key: sorted(found) for key, found in kinds.items()}


def column_types(parts: Iterable[Mapping[str, Iterable[str]]]) -> dict[str, pa.DataType]:
    """The type of each column from the kinds in all parts, in the order of their first appearance.

    Texts, numbers and truth values keep their type. What has values of several kinds, lists or
    objects becomes text: texts as they are, the rest as JSON.
    """
    kinds: dict[str, set[str]] = {}
    for part in parts:
        for key, found in part.items():
            kinds.setdefault(key, set()).update(found)
    return {key: _type_of(found) for key, found in kinds.items()}


def column_array(rows: Iterable[Mapping[str, Any]], key: str, type_: pa.DataType) -> pa.Array:
    """A column of rows as an array of a type that `column_types` chose."""
    values = (row.get(key) for row in rows)
    if type_ == pa.string():
        return pa.array([_as_text(value) for value in values], type_)
    return pa.array(list(values), type_)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        if abs(value) <= _LARGEST_EXACT:
            return "integer"
        return "long" if -_LARGEST_INTEGER <= value < _LARGEST_INTEGER else "other"
    if isinstance(value, float):
        return "number"
    return "text" if isinstance(value, str) else "other"


def _type_of(kinds: set[str]) -> pa.DataType:
    if kinds == {"integer", "number"}:
        return pa.float64()
    if kinds == {"integer", "long"}:
        return pa.int64()
    return _TYPES.get(next(iter(kinds)), pa.string()) if len(kinds) == 1 else pa.string()


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
