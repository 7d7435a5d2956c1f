"""Tables cut into blocks of rows: each is a file, and a runner only shuffles references to it.

A runner's shuffle may keep everything in memory, so rows must not pass through it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, NoRowsError, UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.data.tables.cells import columns_of_texts
from bert_tf.data.tables.detectors.rows import ROW_DETECTORS
from bert_tf.data.tables.formats.conll import COLUMN_NUMBER, is_conll
from bert_tf.data.tables.formats.delimited_header import TableHeader
from bert_tf.data.tables.judged import SHOWN_ROWS, ReadValues, first_values, judge, report
from bert_tf.data.tables.places import Place
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.repeated_ids import RepeatedIds
from bert_tf.data.tables.tables import TableBlock, fixed_columns, read_table_blocks
from bert_tf.data.tables.word_blocks import TOKENS, read_word_blocks, row_words
from pipeline.beam.files import check_shared
from pipeline.beam.progress import Progress, report_progress
from pipeline.scoring.columns import DELIMITED_FORMATS
from pipeline.scoring.output_rows import TSV_BREAKS
from pipeline.scoring.plan import BlockFiles, ScoringPlan
from pipeline.scoring.tables import CONLL, ScoredTable

Sources = dict[str, str | tuple[str, ...]]
"""Column by model input, see `ScoringColumns`."""

_MOST_KEYS = 10_000  # all rows together have, of JSON lines


@dataclasses.dataclass(frozen=True)
class BlockReference:
    """Where a block of rows is.

    Attributes:
        table, number: of the table, and of the block in it, from 0.
        files: where its rows and results are.
        sha256: of its content.
    """

    table: int
    number: int
    files: BlockFiles
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowBlock:
    """Rows of a table, as they wait to be scored.

    Attributes:
        reference: which block this is.
        raw_rows: the rows as the table has them.
        lines: the line of each, counted from 1.
        numbers: the row of each in a spreadsheet, 0 where that is the line.
        ids: of the rows; "" where a row has none.
        delimiter: what separates the table's cells; empty for JSON lines.
        cells: values by column of each row; None where rows are copied as they are.
        texts: by name of the model's input, of each row a text or a list of texts.
        words: of each row; None where rows are texts.
        rejects: rows that cannot be used.
        rejected_rows: of each reject its row and cells, like those above, if they are kept; of what
            is no row those of an empty one.
    """

    reference: BlockReference
    raw_rows: list[str]
    lines: list[int]
    delimiter: str
    cells: list[dict[str, Any]] | None
    texts: dict[str, list[Any]]
    words: list[list[str]] | None
    rejects: list[Reject]
    rejected_rows: list[tuple[str, dict[str, Any]]] = dataclasses.field(default_factory=list)
    numbers: list[int] = dataclasses.field(default_factory=list)
    ids: list[str] = dataclasses.field(default_factory=list)

    def place(self, row: int) -> Place:
        """Return where a row of the block is in its table."""
        number = self.numbers[row] if self.numbers else 0
        return Place(self.lines[row], number, self.ids[row] if self.ids else "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableSummary:
    """Facts on a table once all of its blocks are cut.

    Attributes:
        blocks: number of blocks.
        rows_in: usable and rejected rows.
        keys: names of all columns, in the order of their first appearance.
        header: of a delimited table; else None.
        repeated_ids: rows with the id of an earlier row, where the user names the column of ids.
        repeated_id: the first of those ids.
    """

    blocks: int
    rows_in: int
    keys: tuple[str, ...]
    header: TableHeader | None
    repeated_ids: int = 0
    repeated_id: str = ""


def check_tables(plan: ScoringPlan, console: Console) -> None:
    """Check the first block of each table, so that a wrong column ends a job before it starts.

    Shows the first rows of the first table. Warns of tables without rows and of doubtful values.

    Raises:
        UsageError: a column is wrong, or values cannot be what is meant (`ROW_DETECTORS`).
        InputError: a header is bad, no table has rows, or values cannot be what is meant.
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


def check_names(table: ScoredTable, columns: Iterable[str], plan: ScoringPlan) -> None:
    """Raise UsageError for columns that the output cannot have beside the added ones.

    Args:
        table: its output's format decides.
        columns: names of the table's columns.
        plan: the added columns.
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
    _check_names_fit_tsv(table, added)


def read_first_block(table: ScoredTable, plan: ScoringPlan, console: Console) -> TableBlock:
    """Read a table's first rows; those that the task cannot predict become rejects."""
    sources, blocks = open_blocks(table, plan, max_rows=plan.limit, console=console)
    block = next(blocks)
    check_names(table, block.columns, plan)
    return _without_faulty_rows(table, block, plan, sources)


def first_texts(table: ScoredTable, plan: ScoringPlan) -> dict[str, list[Any]]:
    """Return the texts of the first block's usable rows, by the model's input names."""
    sources, blocks = open_blocks(table, plan, max_rows=plan.limit)
    try:
        block = next(blocks)
    except NoRowsError:
        return {name: [] for name in sources}
    return _input_values(_without_faulty_rows(table, block, plan, sources), plan, sources)


def cut_table(table: ScoredTable, plan: ScoringPlan) -> Iterator[BlockReference]:
    """Write a table's blocks, then a summary.

    Args:
        table: to cut.
        plan: rows of a block, columns and folder.

    Yields:
        A reference to each block.

    Raises:
        InputError, UsageError: the table cannot be read, or has columns that it must not have.
    """
    check_shared(str(plan.parts))
    keys: dict[str, None] = {}
    header: TableHeader | None = None
    number = rows_in = 0
    repeated = RepeatedIds()
    reserved = set(plan.columns.added(table.output_format))
    sources, blocks = open_blocks(table, plan, max_rows=plan.limit)
    try:
        for block in blocks:
            block = _without_notes(table, _without_reserved_keys(table, block, reserved))
            block = _without_faulty_rows(table, block, plan, sources)
            if plan.dialect.id_column is not None:
                repeated.add(block.places.id_of_line.values())
            for row in block.rows:
                keys.update(dict.fromkeys(row))
            if plan.columns.keeps_rejected:
                for _, rejected in block.rejected_rows:
                    keys.update((key, None) for key in rejected or () if key not in reserved)
            if len(keys) > _MOST_KEYS:
                raise InputError(
                    f"{table.source}: its rows have more than {_MOST_KEYS:,} different keys, so it "
                    "is not a table; move keys that differ by row into values"
                )
            if table.source_format != "tsv":
                _check_names_fit_tsv(table, keys)
            yield _write_block(table, block, number, plan, sources)
            header = block.header
            rows_in += block.rows_in
            number += 1
    except NoRowsError as error:
        if len(plan.tables) == 1 and not plan.may_be_empty:
            raise
        header = error.header
        keys = dict.fromkeys(error.columns)
    summary = TableSummary(
        blocks=number,
        rows_in=rows_in,
        keys=tuple(keys),
        header=header,
        repeated_ids=repeated.count,
        repeated_id=repeated.first,
    )
    write_text_atomically(
        plan.summary_file(table.number), json.dumps(dataclasses.asdict(summary)) + "\n"
    )
    report_progress(Progress.TABLE_ROWS, rows_in)
    report_progress(Progress.TABLES, 1)


def read_summary(table: ScoredTable, plan: ScoringPlan) -> TableSummary:
    """Read the facts that `cut_table` wrote after a table's blocks."""
    content = json.loads(plan.summary_file(table.number).read_text(encoding="utf-8"))
    header = content["header"]
    if header is not None:
        names = {key: tuple(header[key]) for key in ("columns", "written")}
        content["header"] = TableHeader(**{**header, **names})
    return TableSummary(**{**content, "keys": tuple(content["keys"])})


def read_block(reference: BlockReference, plan: ScoringPlan) -> RowBlock:
    """Read a block that `cut_table` wrote, in a worker."""
    check_shared(str(plan.parts))
    content = json.loads(reference.files.rows.read_text(encoding="utf-8"))
    rejects = [Reject(**reject) for reject in content.pop("rejects")]
    return RowBlock(reference=reference, rejects=rejects, **content)


def _check_names_fit_tsv(table: ScoredTable, keys: Iterable[str]) -> None:
    if table.output_format != "tsv":
        return
    for key in keys:
        if TSV_BREAKS.search(key):
            raise UsageError(
                f"{table.source}: column {key!r} has a tab or line end in its name, which TSV "
                "cannot contain; write .csv or .jsonl"
            )


def _without_reserved_keys(table: ScoredTable, block: TableBlock, reserved: set[str]) -> TableBlock:
    """Reject objects of later lines that already have an added key."""
    if table.source_format != "jsonl":
        return block
    fault = ("has a key of an added column", "")
    faults = (None if reserved.isdisjoint(row) else fault for row in block.rows)
    return block.rejecting(table.source, faults)


def _without_notes(table: ScoredTable, block: TableBlock) -> TableBlock:
    """Leave out cells under empty names where rows are written with as many cells as the header."""
    formats = {table.source_format, table.output_format}
    if block.header is None or not formats.issubset(DELIMITED_FORMATS):
        return block
    rows = [{name: row[name] for name in block.columns} for row in block.rows]
    rejected = [
        (raw, row and {name: row[name] for name in block.columns})
        for raw, row in block.rejected_rows
    ]
    return dataclasses.replace(block, rows=rows, rejected_rows=rejected)


def _without_faulty_rows(
    table: ScoredTable, block: TableBlock, plan: ScoringPlan, sources: Sources
) -> TableBlock:
    """Reject rows that the model's task cannot predict."""
    row_fault = plan.columns.row_fault
    if row_fault is None:
        return block
    columns = _input_values(block, plan, sources)
    rows = zip(*columns.values(), strict=True)
    faults = (row_fault(dict(zip(columns, values, strict=True))) for values in rows)
    return block.rejecting(table.source, faults)


def open_blocks(
    table: ScoredTable, plan: ScoringPlan, *, max_rows: int = 0, console: Console | None = None
) -> tuple[Sources, Iterator[TableBlock]]:
    """Open a table.

    Args:
        table: to read.
        plan: columns, dialect and rows of a block.
        max_rows: how many of its first rows are read; 0 for all.
        console: gets notes of the reader; None for none.

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


def _input_values(block: TableBlock, plan: ScoringPlan, sources: Sources) -> dict[str, list[Any]]:
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


def _rejected_rows(block: TableBlock) -> list[tuple[str, dict[str, Any]]]:
    """Return rejected rows and their cells; those of an empty row for what is no row."""
    empty = "{}"
    cells = dict[str, Any]()
    if block.header is not None:
        width = len(block.columns) + block.header.empty_columns
        empty = block.header.delimiter * (width - 1)
        cells = dict.fromkeys(block.columns, "")
    return [
        (raw or empty, cells if row is None else {name: row[name] for name in row})
        for raw, row in block.rejected_rows
    ]


def _names_of_rows(block: TableBlock) -> dict[str, list[Any]]:
    """Return `numbers` and `ids` of a block as far as rows have any, see `RowBlock`."""
    places = [block.places.at(line) for line in block.lines]
    names: dict[str, list[Any]] = {
        "numbers": [each.row for each in places],
        "ids": [each.id for each in places],
    }
    return {name: values for name, values in names.items() if any(values)}


def _write_block(
    table: ScoredTable, block: TableBlock, number: int, plan: ScoringPlan, sources: Sources
) -> BlockReference:
    words = plan.columns.words
    is_changed = table.source_format != table.output_format or plan.escapes_formulas
    needs_cells = is_changed and table.source_format in DELIMITED_FORMATS
    content = {
        "raw_rows": block.raw_rows,
        "lines": block.lines,
        **_names_of_rows(block),
        "delimiter": "" if block.header is None else block.header.delimiter,
        "cells": block.rows if needs_cells else None,
        "texts": _input_values(block, plan, sources),
        "words": None if words is None else row_words(block, str(sources[words.column])),
        "rejects": [dataclasses.asdict(reject) for reject in block.rejects],
        "rejected_rows": _rejected_rows(block) if plan.columns.keeps_rejected else [],
    }
    text = json.dumps(content)
    files = plan.files(table.number, number)
    write_text_atomically(files.rows, text, lasting=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return BlockReference(table=table.number, number=number, files=files, sha256=digest)
