"""Joins finished parts to the outputs, in the order of the tables' rows."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bert_tf.base.errors import InputError
from bert_tf.base.files import replacing_file
from bert_tf.base.json_files import read_sealed
from bert_tf.data.tables.compression import compressing
from bert_tf.data.tables.formats.parquet import is_view, open_parquet, read_batches, without_views
from bert_tf.data.tables.rejects import read_rejects
from bert_tf.data.text.vocabulary_files import read_folder_vocabulary
from bert_tf.tasks.base.declaration import FieldKind
from bert_tf.tasks.base.prediction_rows import Abstention
from bert_tf.tasks.profile.drift import Counts, Drift
from pipeline.beam.stored_path import path_of
from pipeline.scoring.blocks import TableSummary, read_summary
from pipeline.scoring.output_rows import cells_of_object, delimited_line, header_line
from pipeline.scoring.parts import Fact, column_array, column_types
from pipeline.scoring.plan import BlockFiles, ScoringPlan
from pipeline.scoring.tables import ScoredTable

# A row group of Parquet ends with the block that reaches either.
_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 64 << 20
_TYPES: dict[FieldKind, pa.DataType] = {
    "label": pa.string(),
    "text": pa.string(),
    "json": pa.string(),
    "place": pa.int64(),
    "count": pa.int64(),
    "probability": pa.float64(),
    "value": pa.float64(),
}
# The metadata that names the index columns. Other metadata of the source may not fit the output.
_PANDAS = b"pandas"


def write_parquet(
    table: ScoredTable, summary: TableSummary, blocks: Sequence[BlockFiles], plan: ScoringPlan
) -> None:
    """Write an output atomically.

    Args:
        table: its source and output.
        summary: of the source.
        blocks: files of its blocks, in order.
        plan: the added columns.

    Raises:
        InputError: a Parquet source has changed.
    """
    added = {name: _TYPES[kind] for name, kind in plan.columns.added("parquet").items()}
    with replacing_file(path_of(table.output)) as aside:
        if table.source_format == "parquet":
            with contextlib.closing(SourceRows(table, plan)) as source:
                schema = _with_columns(source.schema.empty_table(), [], added).schema
                parts = ((files, _objects(files.part)) for files in blocks)
                rows = (
                    _with_columns(source.next_kept(files, len(scored)), scored, added)
                    for files, scored in parts
                )
                _write_groups(aside, schema, rows)
                source.check_rows(summary.rows_in, is_all=not plan.limit)
            return
        known: dict[str, pa.DataType] = {}
        if table.source_format == "jsonl":
            known = column_types(read_sealed(files.done)[Fact.KINDS] for files in blocks)
        types = {key: known.get(key, pa.string()) for key in summary.keys} | added
        rows = (_table_of(_objects(files.part), types) for files in blocks)
        _write_groups(aside, pa.schema(list(types.items())), rows)


def _with_columns(
    rows: pa.Table, predictions: Sequence[Mapping[str, Any]], added: Mapping[str, pa.DataType]
) -> pa.Table:
    """Append the added columns to rows."""
    for name, column in zip(added, _table_of(predictions, added).columns, strict=True):
        rows = rows.append_column(name, column)
    return rows


def _objects(part: Path) -> list[dict[str, Any]]:
    with part.open(encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def _table_of(rows: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType]) -> pa.Table:
    return pa.table({name: column_array(rows, name, type_) for name, type_ in types.items()})


def _write_groups(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write row groups that are neither tiny nor too big for memory."""
    with path.open("wb") as stream, pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        waiting: list[pa.Table] = []
        for table in tables:
            waiting.append(table)
            rows = sum(map(len, waiting))
            num_bytes = sum(part.nbytes for part in waiting)
            if rows >= _GROUP_ROWS or num_bytes >= _GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))


class SourceRows:
    """Reads the rows of a Parquet file again, block by block.

    Columns keep their types this way, which blocks of JSON would lose. In `schema`, views inside
    other types are plain texts, bytes and lists.

    Args:
        table: its source.
        plan: opens the source.
        columns: names; None for all.
    """

    def __init__(
        self, table: ScoredTable, plan: ScoringPlan, columns: Collection[str] | None = None
    ):
        self._source = table.source
        self._keeps_rejected = plan.columns.keeps_rejected
        self._open = contextlib.ExitStack()
        stream, file = self._open.enter_context(open_parquet(table.source, plan.open_table))
        stored = file.schema_arrow
        metadata = stored.metadata or {}
        kept = {_PANDAS: metadata[_PANDAS]} if _PANDAS in metadata else None
        fields = [field for field in stored if columns is None or field.name in columns]
        plain_fields = [field.with_type(without_views(field.type)) for field in fields]
        written = [
            field if is_view(field.type) else plain
            for field, plain in zip(fields, plain_fields, strict=True)
        ]
        self._read = pa.schema(plain_fields, kept)
        self.schema = pa.schema(written, kept)
        self._batches = (
            batch
            for group in range(file.num_row_groups)
            for batch in read_batches(stream, file, group, self._read.names)
        )
        self._waiting = self._read.empty_table()
        self._rows = file.metadata.num_rows
        self._taken = 0

    def close(self) -> None:
        self._open.close()

    def next_kept(self, files: BlockFiles, rows: int) -> pa.Table:
        """Return the next block's rows, without rejects unless these are kept.

        Args:
            files: of the block.
            rows: of its part.
        """
        rejected: list[int] = []
        if not self._keeps_rejected:
            rejected = [reject.line for reject in read_rejects(files.rejects)]
        first = self._taken + 1
        all_rows = self._next(rows + len(rejected))
        is_kept = np.ones(len(all_rows), bool)
        is_kept[np.array(rejected, np.int64) - first] = False
        kept = all_rows.filter(pa.array(is_kept))
        return kept if self.schema == self._read else kept.cast(self.schema)

    def check_rows(self, rows: int, *, is_all: bool) -> None:
        """Raise InputError unless as many rows were taken as were cut into blocks.

        Args:
            rows: number of rows that were cut.
            is_all: whether these were all rows of the file.
        """
        if self._taken != rows or (is_all and self._rows != rows):
            raise self._changed()

    def _next(self, rows: int) -> pa.Table:
        """Return the next rows; raise InputError if there are fewer."""
        parts = [self._waiting]
        missing = rows - len(self._waiting)
        while missing > 0:
            batch = next(self._batches, None)
            if batch is None:
                raise self._changed()
            parts.append(pa.Table.from_batches([batch]))
            missing -= len(batch)
        joined = pa.concat_tables(parts)
        self._waiting = joined.slice(rows)
        self._taken += rows
        return joined.slice(0, rows)

    def _changed(self) -> InputError:
        return InputError(f"{self._source}: has changed since the job began; run the command again")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringCounts:
    """Counts of all parts.

    Attributes:
        rejected: rows by reason.
        types: of columns of JSON, if the parts note their kinds.
        sums: of the numbers in the notes on the parts, such as `Fact.ROWS_CUT`.
    """

    rows_in: int
    rows_out: int
    rejected: dict[str, int]
    types: dict[str, pa.DataType]
    sums: Counter[str]

    @property
    def rows_scored(self) -> int:
        """Rows that were not rejected; of these `--label-next` writes only some."""
        return self.rows_in - sum(self.rejected.values())


def why_undecided(abstention: Abstention, share: float | None, counts: ScoringCounts) -> str:
    """Describe rows whose predictions are left out.

    Args:
        abstention: both limits.
        share: of the evaluation rows that are nearer than far texts; see `--abstain-far`.
        counts: of the rows.
    """
    uncertain = f"a probability below {abstention.below:g}"
    if abstention.beyond is None or share is None:
        return uncertain
    far = (
        f"a text farther from the training rows ({counts.sums[Fact.FAR]:,}, beyond "
        f"{abstention.beyond:.4g}) than {share:g} of the evaluation rows"
    )
    return f"{uncertain}, or {far}" if abstention.below > 0 else far


def join_parts(plan: ScoringPlan, rejects_file: Path) -> ScoringCounts:
    """Write each output whole from its parts, and the file of all rejects."""
    counts = join_rejects(plan, rejects_file)
    for table in plan.tables:
        summary = read_summary(table, plan)
        if table.output_format == "parquet":
            write_parquet(table, summary, block_files(table, summary, plan), plan)
        else:
            _join_table(table, summary, plan)
    return counts


def join_rejects(plan: ScoringPlan, rejects_file: Path) -> ScoringCounts:
    """Write the file of all rejects, and count the rows of all parts."""
    rows_in = 0
    sums: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    kinds = []
    with replacing_file(rejects_file) as aside, aside.open("wb") as all_rejects:
        for table in plan.tables:
            summary = read_summary(table, plan)
            rows_in += summary.rows_in
            for files in block_files(table, summary, plan):
                done = read_sealed(files.done)
                sums.update({name: value for name, value in done.items() if isinstance(value, int)})
                rejected.update(done["rejected"])
                kinds.append(done.get(Fact.KINDS, {}))
                _append_file(files.rejects, all_rejects)
    return ScoringCounts(
        rows_in=rows_in,
        rows_out=sums["rows_out"],
        rejected=dict(rejected.most_common()),
        types=column_types(kinds),
        sums=sums,
    )


def drift_of(table: ScoredTable, plan: ScoringPlan) -> Drift | None:
    """Compare a table with the training rows by the counts of its parts; None without any."""
    if plan.drift is None:
        return None
    total: Counts | None = None
    for counts in _facts_of_parts(table, plan, Fact.DRIFT):
        total = Counts.sum_of([counts] if total is None else [total, counts])
    if total is None:
        return None
    return plan.drift.compare(total, lambda: read_folder_vocabulary(Path(plan.model)).vocab)


def scores_of(table: ScoredTable, plan: ScoringPlan) -> np.ndarray | None:
    """Sum the rows of a table by probability, int64 [SCORE_BINS]; None without probabilities."""
    histograms = list(_facts_of_parts(table, plan, Fact.SCORES))
    return np.sum(histograms, axis=0) if histograms else None


def _facts_of_parts(table: ScoredTable, plan: ScoringPlan, fact: Fact) -> Iterator[Any]:
    """Yield a fact of each part of a table that has it."""
    for files in block_files(table, read_summary(table, plan), plan):
        done = read_sealed(files.done)
        if fact in done:
            yield done[fact]


def numbered_parts(plan: ScoringPlan) -> Iterator[tuple[int, int, Path]]:
    """Yield table, block and file of each part, in the order of the rows."""
    for table in plan.tables:
        for block, files in enumerate(block_files(table, read_summary(table, plan), plan)):
            yield table.number, block, files.part


def block_files(table: ScoredTable, summary: TableSummary, plan: ScoringPlan) -> list[BlockFiles]:
    """Return the files of a table's blocks, in order."""
    return [plan.files(table.number, block) for block in range(summary.blocks)]


def _join_table(table: ScoredTable, summary: TableSummary, plan: ScoringPlan) -> None:
    """Write an output of lines from its parts."""
    predictions = list(plan.columns.added(table.output_format))
    escapes = plan.escapes_formulas
    header = header_line(table, summary.header, summary.keys, predictions, escapes=escapes)
    has_mark = summary.header is not None and summary.header.has_mark
    # The cells of objects could not be written before the keys of all objects were known.
    must_rewrite = table.source_format == "jsonl" and table.output_format != "jsonl"
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
                        cells = cells_of_object(line, keys)
                        row = delimited_line(cells, table.output_format, escapes=escapes)
                        stream.write(f"{row}\n".encode())
            else:
                _append_file(files.part, stream)


def _append_file(path: Path, stream: IO[bytes]) -> None:
    with path.open("rb") as part:
        shutil.copyfileobj(part, stream)
