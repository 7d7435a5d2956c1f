"""Scored blocks as files, and how they become the outputs."""

from __future__ import annotations

import codecs
import collections
import contextlib
import dataclasses
import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from bert_tf.base.atomic_files import replacing_file, write_text_atomically
from bert_tf.base.checksums import file_sha256
from bert_tf.base.sealed_json import read_if_sound, read_sealed, sealed
from bert_tf.data.tables.rejects import Reject, count_reasons, write_rejects
from bert_tf.tasks.prediction_rows import prediction_rows
from pipeline.scoring.blocks import BlockReference, RowBlock, TableSummary, read_summary
from pipeline.scoring.output_rows import (
    UnwritableRowError,
    header_line,
    is_rewritten,
    part_line,
    rewritten_line,
)
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.tables import ScoredTable


@dataclasses.dataclass(frozen=True)
class ScoredBlock:
    """A block and the model's outputs, [rows] by name."""

    block: RowBlock
    predicted: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringCounts:
    """Rows of a job, and the rejected ones by reason."""

    rows_in: int
    rows_out: int
    rejected: dict[str, int]


def is_scored(reference: BlockReference, plan: ScoringPlan) -> bool:
    """Whether the part of this very block, by this very model, is finished."""
    done = read_if_sound(plan.done_file(reference.table, reference.number))
    if done is None or (done["identity"], done["block"]) != (plan.identity, reference.sha256):
        return False
    try:
        return done["sha256"] == _sha256_of_part(plan, reference)
    except FileNotFoundError:
        return False


def _sha256_of_part(plan: ScoringPlan, reference: BlockReference) -> list[str]:
    place = (reference.table, reference.number)
    return [file_sha256(path) for path in (plan.part_file(*place), plan.rejects_file(*place))]


def write_part(scored: ScoredBlock, plan: ScoringPlan) -> None:
    """Writes a block's rows as they will stand in the output, its rejects and, last, its counts."""
    block = scored.block
    table = plan.tables[block.reference.table]
    lines, rejects = [], list(block.rejects)
    for index, predictions in enumerate(prediction_rows(plan.columns.fields, scored.predicted)):
        try:
            line = part_line(
                block.raw_rows[index],
                None if block.cells is None else block.cells[index],
                predictions,
                delimiter=block.delimiter,
                source_format=table.source_format,
                output_format=table.output_format,
            )
            lines.append(line)
        except UnwritableRowError as error:
            rejects.append(Reject(table.source, block.lines[index], str(error)))
    rejects.sort(key=lambda reject: reject.line)
    place = (block.reference.table, block.reference.number)
    write_text_atomically(plan.part_file(*place), "".join(f"{line}\n" for line in lines))
    write_rejects(plan.rejects_file(*place), rejects)
    done = {
        "identity": plan.identity,
        "block": block.reference.sha256,
        "rows_out": len(lines),
        "rejected": count_reasons(rejects),
        "sha256": _sha256_of_part(plan, block.reference),
    }
    write_text_atomically(plan.done_file(*place), sealed(done))
    plan.block_file(*place).unlink(missing_ok=True)
    plan.progress_file(*place).unlink(missing_ok=True)


def join_parts(plan: ScoringPlan, rejects_file: Path) -> ScoringCounts:
    """Makes the outputs of the parts, each at once, and the file of all rejects."""
    rows_in = rows_out = 0
    rejected: collections.Counter[str] = collections.Counter()
    with replacing_file(rejects_file) as aside, aside.open("wb") as all_rejects:
        for table in plan.tables:
            summary = read_summary(table, plan)
            rows_in += summary.rows_in
            done = [_read_done(plan, table, block) for block in range(summary.blocks)]
            rows_out += sum(part["rows_out"] for part in done)
            for part in done:
                rejected.update(part["rejected"])
            for block in range(summary.blocks):
                _append_file(plan.rejects_file(table.number, block), all_rejects)
            _join_table(table, summary, plan)
    return ScoringCounts(rows_in=rows_in, rows_out=rows_out, rejected=dict(rejected.most_common()))


def _join_table(table: ScoredTable, summary: TableSummary, plan: ScoringPlan) -> None:
    header = header_line(
        summary.header,
        summary.keys,
        plan.columns.predictions,
        source_format=table.source_format,
        output_format=table.output_format,
    )
    keys = [*summary.keys, *plan.columns.predictions]
    with replacing_file(table.output) as aside, _open_output(aside, table.output) as stream:
        if (
            summary.header is not None
            and summary.header.has_mark
            and table.output_format != "jsonl"
        ):
            stream.write(codecs.BOM_UTF8)  # without it, Excel reads UTF-8 as the system's code page
        if header is not None:
            stream.write(f"{header}\n".encode())
        for block in range(summary.blocks):
            part = plan.part_file(table.number, block)
            if is_rewritten(table.source_format, table.output_format):
                _append_rewritten(part, keys, table.output_format, stream)
            else:
                _append_file(part, stream)


def _append_rewritten(part: Path, keys: list[str], output_format: str, stream: IO[bytes]) -> None:
    with part.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            stream.write(f"{rewritten_line(line, keys, output_format)}\n".encode())


def _append_file(path: Path, stream: IO[bytes]) -> None:
    with path.open("rb") as part:
        shutil.copyfileobj(part, stream)


@contextlib.contextmanager
def _open_output(path: Path, name: str) -> Iterator[IO[bytes]]:
    """Opens a file to write; compressed, and equal for equal content, if its name ends in .gz."""
    with path.open("wb") as plain:
        if not name.endswith(".gz"):
            yield plain
            return
        with gzip.GzipFile(filename="", fileobj=plain, mode="wb", mtime=0) as packed:
            yield cast(IO[bytes], packed)


def _read_done(plan: ScoringPlan, table: ScoredTable, block: int) -> dict[str, Any]:
    return read_sealed(plan.done_file(table.number, block))
