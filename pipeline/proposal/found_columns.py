"""The columns of a file by its first rows, before a task reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.file_names import table_format_by_name
from bert_tf.data.tables.sketches import TableSketch, sketch_columns
from bert_tf.data.tables.tables import fixed_columns, read_table_blocks

FIRST_ROWS = 4096
_WIDEST_EXAMPLE = 50


def found_columns(path: str, dialect: TableDialect, given: Mapping[str, Any]) -> TableSketch | None:
    """Sketches the columns of a table; None of files whose format names them, or has none.

    Args:
        path: the file.
        dialect: how it is written.
        given: columns that are named already, by config key.

    Raises:
        InputError, UsageError: it cannot be read.
    """
    if table_format_by_name(path) is None or fixed_columns(path):
        return None
    blocks = read_table_blocks(path, dialect=dialect, block_rows=FIRST_ROWS, max_rows=FIRST_ROWS)
    block = next(block for block in blocks if block.rows)
    return TableSketch(path=path, columns=sketch_columns(block.columns, block.rows), given=given)


def column_lines(table: TableSketch) -> Iterator[str]:
    """The sketch as a table to read."""
    width = max(len("column"), *(len(each.name) for each in table.columns))
    yield f"  {'column':{width}}  {'kind':6}  {'filled':>6}  {'different':>9}  example"
    for each in table.columns:
        example = each.example
        if len(example) > _WIDEST_EXAMPLE:
            example = example[: _WIDEST_EXAMPLE - 1] + "…"
        filled = each.filled / max(each.rows, 1)
        yield (
            f"  {each.name:{width}}  {each.kind:6}  {filled:>6.0%}  {each.distinct:>9,}  {example}"
        )
