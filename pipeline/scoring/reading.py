"""Opens tables as blocks of rows with the inputs of a model, and checks their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.data.tables.cells import columns_of_texts
from bert_tf.data.tables.formats.conll import is_conll
from bert_tf.data.tables.tables import TableBlock, fixed_columns, read_table_blocks
from bert_tf.data.tables.word_blocks import TOKENS, read_word_blocks, row_words
from pipeline.scoring.output_rows import TSV_BREAKS
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.tables import CONLL, ScoredTable

Sources = dict[str, str | tuple[str, ...]]
"""Column by model input, see `ScoringColumns`."""


def open_blocks(
    table: ScoredTable, plan: ScoringPlan, *, max_rows: int = 0, console: Console | None = None
) -> tuple[Sources, Iterator[TableBlock]]:
    """Open a table.

    Args:
        table: to read.
        plan: columns, dialect and rows of a block.
        max_rows: rows to read from the beginning; 0 for all.
        console: gets notes of the reader; None for no notes.

    Returns:
        The column of each model input, and the blocks.
    """
    sources = plan.columns.sources
    if plan.columns.words is not None:
        column = str(sources[plan.columns.words.column])
        blocks = read_word_blocks(
            table.source,
            column=column,
            dialect=plan.dialect,
            block_rows=plan.block_rows,
            max_rows=max_rows,
            as_lines=table.source_format == CONLL,
            console=console,
            opener=plan.open_table,
        )
        in_rows = TOKENS if is_conll(table.source) else column
        return {plan.columns.words.column: in_rows}, blocks
    if sources.keys() <= set(fixed_columns(table.source, plan.open_table)):
        sources = {name: name for name in sources}
    lists = [columns for columns in sources.values() if isinstance(columns, tuple)]
    parts = [columns_of_texts(columns) for columns in lists if len(columns) > 1]
    blocks = read_table_blocks(
        table.source,
        dialect=plan.dialect,
        block_rows=plan.block_rows,
        text_columns=[column for column in sources.values() if isinstance(column, str)],
        value_columns=[name for filled, _ in parts for name in filled],
        list_columns=[
            *(columns[0] for columns in lists if len(columns) == 1),
            *(name for _, optional in parts for name in optional),
        ],
        max_rows=max_rows,
        console=console,
        opener=plan.open_table,
    )
    return sources, blocks


def input_values(block: TableBlock, plan: ScoringPlan, sources: Sources) -> dict[str, list[Any]]:
    """Return the values of each model input, [rows] by name."""
    words = plan.columns.words
    if words is not None:
        rows = row_words(block, str(sources[words.column]))
        return {words.input: [" ".join(row) for row in rows]}
    values: dict[str, list[Any]] = {
        name: block.texts(source) if isinstance(source, str) else block.text_lists(source)
        for name, source in sources.items()
    }
    return values | {name: [""] * len(block.rows) for name in plan.columns.empty_inputs}


def without_faulty_rows(
    table: ScoredTable, block: TableBlock, plan: ScoringPlan, sources: Sources
) -> TableBlock:
    """Reject rows that the model's task cannot predict."""
    row_fault = plan.columns.row_fault
    if row_fault is None:
        return block
    columns = input_values(block, plan, sources)
    rows = zip(*columns.values(), strict=True)
    faults = (row_fault(dict(zip(columns, values, strict=True))) for values in rows)
    return block.rejecting(table.source, faults)


def check_names(table: ScoredTable, columns: Iterable[str], plan: ScoringPlan) -> None:
    """Check that the output can have the columns of a table beside the added ones.

    Args:
        table: with the format of its output.
        columns: names of the table's columns.
        plan: with the added columns.

    Raises:
        UsageError: two columns would have the same name, or TSV cannot contain a name.
    """
    added = plan.columns.added(table.output_format)
    taken = min(added.keys() & set(columns), default=None)
    if taken is not None:
        remedy = "rename or remove it"
        if plan.columns.can_rename:
            remedy = f"rename the added one with --rename {plan.columns.named_by(taken)}=NAME"
        raise UsageError(
            f"{table.source}: has a column {taken!r} already, and the output would add one of that "
            f"name; {remedy}"
        )
    check_names_fit_tsv(table, added)


def check_names_fit_tsv(table: ScoredTable, keys: Iterable[str]) -> None:
    """Raise UsageError for names of columns that break the lines of a TSV output."""
    if table.output_format != "tsv":
        return
    for key in keys:
        if TSV_BREAKS.search(key):
            raise UsageError(
                f"{table.source}: column {key!r} has a tab or line end in its name, which TSV "
                "cannot contain; write .csv or .jsonl"
            )
