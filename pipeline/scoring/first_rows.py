"""The first rows of tables: checked before a job starts, shown to the user, and tried out."""

from __future__ import annotations

from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import NoRowsError
from bert_tf.data.tables.detectors.rows import ROW_DETECTORS
from bert_tf.data.tables.formats.conll import COLUMN_NUMBER
from bert_tf.data.tables.judged import SHOWN_ROWS, ReadValues, first_values, judge, report
from bert_tf.data.tables.tables import TableBlock
from bert_tf.data.tables.word_blocks import row_words
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.reading import (
    Sources,
    check_names,
    input_values,
    open_blocks,
    without_faulty_rows,
)
from pipeline.scoring.tables import ScoredTable


def check_tables(plan: ScoringPlan, console: Console) -> None:
    """Check the first block of each table, so that a wrong column ends a job before it starts.

    Shows the first rows of the first table. Warns of tables without rows and of doubtful values.

    Raises:
        UsageError: a column is wrong, or its values show that another is meant (`ROW_DETECTORS`).
        InputError: a header is bad, no table has rows, or values are wrong (`ROW_DETECTORS`).
    """
    empty = []
    is_shown = False
    for table in plan.tables:
        try:
            sources, blocks = open_blocks(table, plan, console=console)
            block = next(blocks)
            check_names(table, block.columns, plan)
        except NoRowsError as error:
            empty.append((table, error))
            continue
        values = _values_read(table, block, plan, sources)
        if not is_shown:
            console.info(*first_values(values))
            is_shown = True
        report(table.source, judge(values, ROW_DETECTORS), console)
    if len(empty) == len(plan.tables) and not plan.may_be_empty:
        _, first_error = empty[0]
        raise first_error
    for table, _ in empty:
        console.warn(f"{table.source}: has no rows")


def _values_read(
    table: ScoredTable, block: TableBlock, plan: ScoringPlan, sources: Sources
) -> ReadValues:
    """Return the first values of a table, for detectors and the user."""
    words = plan.columns.words
    if words is not None:
        column = str(sources[words.column])
        rows = row_words(block, column)
        named = str(plan.columns.sources[words.column])
        return ReadValues(
            source=table.source,
            lines=block.lines,
            places=block.places,
            words=rows,
            is_words_column_given=COLUMN_NUMBER.fullmatch(named) is not None,
            shown=[{column: " ".join(row)} for row in rows[:SHOWN_ROWS]],
        )
    columns = [column for column in sources.values() if isinstance(column, str)]
    texts = {column: block.texts(column) for column in columns}
    return ReadValues(
        source=table.source, lines=block.lines, places=block.places, texts=texts, used=columns
    )


def read_first_block(table: ScoredTable, plan: ScoringPlan, console: Console) -> TableBlock:
    """Read a table's first rows; those that the task cannot predict become rejects."""
    sources, blocks = open_blocks(table, plan, max_rows=plan.limit, console=console)
    block = next(blocks)
    check_names(table, block.columns, plan)
    return without_faulty_rows(table, block, plan, sources)


def first_texts(table: ScoredTable, plan: ScoringPlan) -> dict[str, list[Any]]:
    """Return the texts of the first block's usable rows, by the model's input names."""
    sources, blocks = open_blocks(table, plan, max_rows=plan.limit)
    try:
        block = next(blocks)
    except NoRowsError:
        return {name: [] for name in sources}
    return input_values(without_faulty_rows(table, block, plan, sources), plan, sources)
