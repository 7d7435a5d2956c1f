"""Arrow's types that its functions and Python's types lack, as types that they have.

Views of texts, bytes and lists, as Polars has them, can be read and written, but Arrow 25 selects
no rows of them and cannot slice them inside structs; and Python has no nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa


def is_view(kind: pa.DataType) -> bool:
    """Whether a column of this type holds views of texts or bytes."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def without_views(kind: pa.DataType) -> pa.DataType:
    """The type of the same values whose rows can be selected."""
    return _mapped(kind, _without_view)


def batch_without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of the types of `without_views`."""
    for index, field in enumerate(batch.schema):
        kind = without_views(field.type)
        if kind != field.type:
            column = batch.column(index)
            # Arrow casts flat columns only; of nested ones a cast can end the process.
            plain = (
                column.cast(kind) if is_view(field.type) else pa.array(python_values(column), kind)
            )
            batch = batch.set_column(index, field.with_type(kind), plain)
    return batch


def python_values(column: pa.Array) -> list[Any]:
    """The values as Python's, times as texts where its types cannot hold one of them."""
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
    """The type with its innermost types changed, and views of lists as lists."""
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
