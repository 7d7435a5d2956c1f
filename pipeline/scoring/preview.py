"""What a scoring job would do, from the first rows of its inputs (`--dry-run`)."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.wording import quantity
from bert_tf.data.tables.dialect import compression_of
from bert_tf.data.tables.formats.parquet import open_parquet
from bert_tf.data.tables.tables import TableBlock, fixed_columns, table_format
from bert_tf.data.tables.word_blocks import is_conll
from pipeline.beam.storage import list_stored
from pipeline.outputs.rejects import warn_of_rejects
from pipeline.scoring.blocks import read_first_block
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.tables import ScoredTable

_FIRST_ROWS = 1000


def preview(plan: ScoringPlan, console: Console, *, engine: str) -> dict[str, Any]:
    """Says what would be read and written; writes nothing.

    Args:
        plan: the job.
        console: where to.
        engine: what is known of it, in words.

    Returns:
        `engine`, `tables` with the estimated `rows` of each (None where that is not known), and the
        `counts` of the rows that were read.

    Raises:
        InputError, UsageError: what would end the job before it starts.
    """
    plan = dataclasses.replace(plan, block_rows=min(plan.block_rows, _FIRST_ROWS))
    console.info(f"engine: {engine}")
    read = ", ".join(f"{name} from {column!r}" for name, column in plan.columns.sources.items())
    tables = []
    rows_in = 0
    rejected: collections.Counter[str] = collections.Counter()
    for table in plan.tables:
        block = read_first_block(table, plan, console)
        rows, is_exact = _estimated_rows(table, block, plan)
        about = "unknown" if rows is None else f"{'' if is_exact else 'about '}{rows:,}"
        added = plan.columns.added(table.output_format)
        console.info(
            f"{table.source} -> {table.output}\n"
            f"  reads: {read}\n"
            f"  adds: {', '.join(added)}\n"
            f"  rows: {about}; of the first {block.rows_in:,} rejected: {len(block.rejects):,}"
        )
        warn_of_rejects(console, block.rejects, block.rows_in, table.source)
        rows_in += block.rows_in
        rejected.update(reject.reason for reject in block.rejects)
        tables.append(
            {"source": table.source, "output": table.output, "rows": rows, "added": list(added)}
        )
    console.info(f"dry run of {quantity(len(tables), 'table')}: nothing was written")
    return {
        "dry_run": True,
        "engine": engine,
        "tables": tables,
        "counts": {"rows_in": rows_in, "rejected": dict(rejected)},
    }


def _estimated_rows(
    table: ScoredTable, block: TableBlock, plan: ScoringPlan
) -> tuple[int | None, bool]:
    """Rows that would be read, None if that is not known, and whether that number is exact."""
    limit = plan.limit
    if block.rows_in < plan.block_rows:
        return block.rows_in, True
    if is_conll(table.source):
        return None, False
    if table_format(table.source) == "parquet":
        with open_parquet(table.source, plan.open_table) as (_, file):
            rows = file.metadata.num_rows
        return (min(rows, limit) if limit else rows), True
    if (
        not block.raw_rows
        or compression_of(table.source)
        or fixed_columns(table.source, plan.open_table)
    ):
        return None, False
    (size,) = list_stored(table.source).values()
    encoded = (row.encode(plan.dialect.encoding, "replace") for row in block.raw_rows)
    per_row = (sum(map(len, encoded)) + len(block.raw_rows)) / len(block.raw_rows)
    rows = max(round(size / per_row), block.rows_in)
    is_limited = bool(limit) and rows >= limit
    return (limit if is_limited else rows), False
