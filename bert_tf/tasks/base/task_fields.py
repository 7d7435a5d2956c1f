"""Fields of a task's dataclass as entries of `task.json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

_LEARNED = "learned"
_KEPT_IF_SET = "kept if set"


def learned(before: Any) -> Any:
    """A field whose value follows from the training rows.

    Args:
        before: its value until they are read; a `task.json` must have another.
    """
    return dataclasses.field(default=before, metadata={_LEARNED: True})


def kept_if_set(default: Any) -> Any:
    """A field that a `task.json` only has where it is not the default."""
    return dataclasses.field(default=default, metadata={_KEPT_IF_SET: True})


def added_fields(task: type, base: type) -> list[dataclasses.Field]:
    """The fields that a dataclass has beyond those of its base."""
    names = {field.name for field in dataclasses.fields(base)}
    return [field for field in dataclasses.fields(task) if field.name not in names]


def fields_as_settings(fields: Iterable[dataclasses.Field], task: Any) -> dict[str, Any]:
    """Returns values ready for JSON by name: tuples become lists, dataclasses objects."""
    return {
        field.name: _as_setting(value)
        for field in fields
        if (value := getattr(task, field.name)) != field.default
        or _KEPT_IF_SET not in field.metadata
    }


def _as_setting(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return fields_as_settings(dataclasses.fields(value), value)
    return list(value) if isinstance(value, tuple) else value


def fields_from_settings(
    fields: Iterable[dataclasses.Field], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The inverse: arguments for the dataclass; lists become tuples.

    A field with a default may be missing, as in a `task.json` of an earlier release, unless it is
    `learned`.

    Raises:
        KeyError: a field is missing.
    """
    values = {
        field.name: settings[field.name]
        for field in fields
        if field.name in settings or _is_required(field)
    }
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }


def _is_required(field: dataclasses.Field) -> bool:
    return field.default is dataclasses.MISSING or _LEARNED in field.metadata
