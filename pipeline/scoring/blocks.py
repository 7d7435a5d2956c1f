"""Tables cut into blocks of rows: each is a file, and a runner only shuffles references to it.

A runner's shuffle may keep everything in memory, so rows must not pass through it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from bert_tf.base.errors import InputError, NoRowsError
from bert_tf.base.files import write_text_atomically
from bert_tf.data.tables.formats.delimited_header import TableHeader
from bert_tf.data.tables.places import Place
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.repeated_ids import RepeatedIds
from bert_tf.data.tables.tables import TableBlock
from bert_tf.data.tables.word_blocks import row_words
from pipeline.beam.files import check_shared
from pipeline.beam.progress import Progress, report_progress
from pipeline.scoring.columns import DELIMITED_FORMATS
from pipeline.scoring.plan import BlockFiles, ScoringPlan
from pipeline.scoring.reading import (
    Sources,
    check_names_fit_tsv,
    input_values,
    open_blocks,
    without_faulty_rows,
)
from pipeline.scoring.tables import ScoredTable

_MOST_KEYS = 10_000  # different keys of all rows of a file of JSON lines


@dataclasses.dataclass(frozen=True)
class BlockReference:
    """The place of a block of rows.

    Attributes:
        table, number: numbers of the table, and of the block in it, from 0.
        files: of its rows and results.
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
        delimiter: of the table's cells; empty for JSON lines.
        cells: values by column of each row; None where rows are copied as they are.
        texts: by name of the model's input, a text or a list of texts for each row.
        words: of each row; None where rows are texts.
        rejects: rows that cannot be used.
        rejected_rows: the row and cells of each reject, like those above, if rejects are kept; an
            empty row for a reject that is no row.
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
        """Return the place of a row of the block in its table."""
        number = self.numbers[row] if self.numbers else 0
        row_id = self.ids[row] if self.ids else ""
        return Place(self.lines[row], number, row_id)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableSummary:
    """Facts on a table once all of its blocks are cut.

    Attributes:
        blocks: number of blocks.
        rows_in: usable and rejected rows.
        keys: names of all columns, in the order of their first appearance.
        header: of a delimited table; else None.
        repeated_ids: number of rows with the id of an earlier row, if the user names the column of
            ids.
        repeated_id: the first repeated id.
    """

    blocks: int
    rows_in: int
    keys: tuple[str, ...]
    header: TableHeader | None
    repeated_ids: int = 0
    repeated_id: str = ""


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
    number = 0  # of the next block
    rows_in = 0
    repeated = RepeatedIds()
    reserved = set(plan.columns.added(table.output_format))
    sources, blocks = open_blocks(table, plan, max_rows=plan.limit)
    try:
        for block in blocks:
            block = _without_notes(table, _without_reserved_keys(table, block, reserved))
            block = without_faulty_rows(table, block, plan, sources)
            if plan.dialect.id_column is not None:
                repeated.add(block.places.id_of_line.values())
            for row in block.rows:
                keys.update(dict.fromkeys(row))
            if plan.columns.keeps_rejected:
                for _, rejected in block.rejected_rows:
                    own_keys = [key for key in rejected or () if key not in reserved]
                    keys.update(dict.fromkeys(own_keys))
            if len(keys) > _MOST_KEYS:
                raise InputError(
                    f"{table.source}: its rows have more than {_MOST_KEYS:,} different keys, so it "
                    "is not a table; move keys that differ by row into values"
                )
            if table.source_format != "tsv":
                check_names_fit_tsv(table, keys)
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


def _without_reserved_keys(table: ScoredTable, block: TableBlock, reserved: set[str]) -> TableBlock:
    """Reject objects of later lines that already have an added key."""
    if table.source_format != "jsonl":
        return block
    fault = ("has a key of an added column", "")
    faults = (None if reserved.isdisjoint(row) else fault for row in block.rows)
    return block.rejecting(table.source, faults)


def _without_notes(table: ScoredTable, block: TableBlock) -> TableBlock:
    """Leave out cells under empty names if the output has exactly the columns of the header."""
    formats = {table.source_format, table.output_format}
    if block.header is None or not formats.issubset(DELIMITED_FORMATS):
        return block
    rows = [{name: row[name] for name in block.columns} for row in block.rows]
    rejected = [
        (raw, row and {name: row[name] for name in block.columns})
        for raw, row in block.rejected_rows
    ]
    return dataclasses.replace(block, rows=rows, rejected_rows=rejected)


def _rejected_rows(block: TableBlock) -> list[tuple[str, dict[str, Any]]]:
    """Return rejected rows and their cells; an empty row for a reject that is no row."""
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
        "numbers": [place.row for place in places],
        "ids": [place.id for place in places],
    }
    return {name: values for name, values in names.items() if any(values)}


def _write_block(
    table: ScoredTable, block: TableBlock, number: int, plan: ScoringPlan, sources: Sources
) -> BlockReference:
    """Write a block to its file, with its cells only if rows cannot be copied as they are."""
    words = plan.columns.words
    is_changed = table.source_format != table.output_format or plan.escapes_formulas
    needs_cells = is_changed and table.source_format in DELIMITED_FORMATS
    content = {
        "raw_rows": block.raw_rows,
        "lines": block.lines,
        **_names_of_rows(block),
        "delimiter": "" if block.header is None else block.header.delimiter,
        "cells": block.rows if needs_cells else None,
        "texts": input_values(block, plan, sources),
        "words": None if words is None else row_words(block, str(sources[words.column])),
        "rejects": [dataclasses.asdict(reject) for reject in block.rejects],
        "rejected_rows": _rejected_rows(block) if plan.columns.keeps_rejected else [],
    }
    text = json.dumps(content)
    files = plan.files(table.number, number)
    write_text_atomically(files.rows, text, lasting=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return BlockReference(table=table.number, number=number, files=files, sha256=digest)
