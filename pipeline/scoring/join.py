"""Finished parts to the outputs, in the order of the tables' rows."""

from __future__ import annotations

import codecs
import collections
import dataclasses
import shutil
from pathlib import Path
from typing import IO

from bert_tf.base.files import replacing_file
from bert_tf.base.json_files import read_sealed
from bert_tf.data.tables.compression import compressing
from pipeline.beam.stored_path import path_of
from pipeline.scoring.blocks import TableSummary, read_summary
from pipeline.scoring.output_rows import header_line, is_rewritten, rewritten_line
from pipeline.scoring.parquet_output import write_parquet
from pipeline.scoring.parts import ABSTAINED, BATCH_TOKENS, PADDED_TOKENS, SUMMED
from pipeline.scoring.plan import BlockFiles, ScoringPlan
from pipeline.scoring.tables import ScoredTable


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringCounts:
    # read and written
    rows_in: int
    rows_out: int
    rows_abstained: int  # written without a decision
    # further counts of the parts, such as the rows that are too long for the model
    sums: dict[str, int]
    rejected: dict[str, int]  # rows by reason
    # of the model's batches, without padding and with it; 0 where that is not known
    tokens: tuple[int, int]


def join_parts(plan: ScoringPlan, rejects_file: Path) -> ScoringCounts:
    """Writes each output whole from its parts, and the file of all rejects."""
    counts = join_rejects(plan, rejects_file)
    for table in plan.tables:
        summary = read_summary(table, plan)
        if table.output_format == "parquet":
            write_parquet(table, summary, block_files(table, summary, plan), plan)
        else:
            _join_table(table, summary, plan)
    return counts


def join_rejects(plan: ScoringPlan, rejects_file: Path) -> ScoringCounts:
    """Writes the file of all rejects, and counts the rows of all parts."""
    rows_in = 0
    totals: collections.Counter[str] = collections.Counter()
    rejected: collections.Counter[str] = collections.Counter()
    with replacing_file(rejects_file) as aside, aside.open("wb") as all_rejects:
        for table in plan.tables:
            summary = read_summary(table, plan)
            rows_in += summary.rows_in
            for files in block_files(table, summary, plan):
                done = read_sealed(files.done)
                totals.update({name: n for name, n in done.items() if isinstance(n, int)})
                rejected.update(done["rejected"])
                _append_file(files.rejects, all_rejects)
    return ScoringCounts(
        rows_in=rows_in,
        rows_out=totals["rows_out"],
        rows_abstained=totals[ABSTAINED],
        sums={name: totals[name] for name in SUMMED if name in totals},
        rejected=dict(rejected.most_common()),
        tokens=(totals[BATCH_TOKENS], totals[PADDED_TOKENS]),
    )


def block_files(table: ScoredTable, summary: TableSummary, plan: ScoringPlan) -> list[BlockFiles]:
    return [plan.files(table.number, block) for block in range(summary.blocks)]


def _join_table(table: ScoredTable, summary: TableSummary, plan: ScoringPlan) -> None:
    predictions = list(plan.columns.added(table.output_format))
    header = header_line(
        summary.header,
        summary.keys,
        predictions,
        source_format=table.source_format,
        output_format=table.output_format,
        escapes=plan.escapes_formulas,
    )
    has_mark = summary.header is not None and summary.header.has_mark
    must_rewrite = is_rewritten(table.source_format, table.output_format)
    keys = [*summary.keys, *predictions]
    with (
        replacing_file(path_of(table.output)) as aside,
        aside.open("wb") as plain,
        compressing(plain, table.output) as stream,
    ):
        if has_mark and table.output_format != "jsonl":
            stream.write(codecs.BOM_UTF8)  # without it, Excel reads UTF-8 as the system's code page
        if header is not None:
            stream.write(f"{header}\n".encode())
        for files in block_files(table, summary, plan):
            if must_rewrite:
                with files.part.open(encoding="utf-8", newline="\n") as lines:
                    for line in lines:
                        cells = rewritten_line(
                            line, keys, table.output_format, escapes=plan.escapes_formulas
                        )
                        stream.write(f"{cells}\n".encode())
            else:
                _append_file(files.part, stream)


def _append_file(path: Path, stream: IO[bytes]) -> None:
    with path.open("rb") as part:
        shutil.copyfileobj(part, stream)
