"""Rows and their vectors as Parquet, NumPy arrays or JSON lines."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bert_tf.base.arrays import offsets_of
from bert_tf.base.errors import UsageError
from bert_tf.base.files import RemotePath, replacing_file
from bert_tf.embeddings.settings import EMBEDDING, TEXT_TOKENS, TOKEN_COLUMNS, EmbedderSettings
from pipeline.beam.stored_path import path_of
from pipeline.scoring.blocks import read_summary
from pipeline.scoring.join import ScoringCounts, SourceRows, block_files
from pipeline.scoring.parts import Fact, ScoredBlock, column_array, finish_part, kinds_of
from pipeline.scoring.plan import BlockFiles, ScoringPlan
from pipeline.scoring.tables import ScoredTable

ROW = "row"
_TOKENS, _STARTS, _ENDS, _VECTORS = TOKEN_COLUMNS


def write_vectors(scored: ScoredBlock, plan: ScoringPlan) -> None:
    """Write a block's rows as JSON objects, and their vectors, which an `Embedder` made.

    Args:
        scored: the rows and their vectors.
        plan: of the job.
    """
    block = scored.block
    predicted = scored.predicted
    assert isinstance(plan.engine, EmbedderSettings)
    rows = block.raw_rows  # JSON lines
    if block.cells is not None:
        rows = [json.dumps(cells, ensure_ascii=False) for cells in block.cells]
    partitions = plan.tables[block.reference.table].partitions
    if partitions:
        rows = [_with_partitions(row, partitions) for row in rows]
    arrays = {ROW: pa.array(rows, pa.string())}
    if rows:
        arrays.update(_vector_arrays(predicted))
    with replacing_file(block.reference.files.part) as aside:
        part = pa.table(arrays)
        with aside.open("wb") as file, pa.ipc.new_file(file, part.schema) as writer:
            writer.write_table(part)
    tokens = predicted[TEXT_TOKENS]
    most = plan.engine.max_seq_length
    facts: dict[str, Any] = {
        Fact.KINDS: kinds_of(map(json.loads, rows)),
        Fact.TOKENS: int(tokens.sum()),
        Fact.ROWS_TRUNCATED: int((tokens > most).sum()),
        Fact.TOKENS_TRUNCATED: int(np.maximum(tokens - most, 0).sum()),
    }
    finish_part(scored, plan, rows_out=len(rows), rejects=block.rejects, facts=facts)


def _with_partitions(row: str, partitions: Mapping[str, str | None]) -> str:
    """Add the partitions of a row's file to the row, a JSON object; its own columns stay."""
    values = json.loads(row)
    more = {name: value for name, value in partitions.items() if name not in values}
    if not more:
        return row
    written = json.dumps(more, ensure_ascii=False)
    separator = ", " if values else ""
    return f"{row[:-1].rstrip()}{separator}{written[1:]}"


def read_parts(plan: ScoringPlan, table: ScoredTable) -> Iterator[tuple[BlockFiles, pa.Table]]:
    """Yield the parts of a table in order.

    Args:
        plan: of the job.
        table: one of its tables.

    Yields:
        Files of the block, and its Arrow table with the column `row` and, if there are rows,
        columns of vectors; it is in memory only while it is used.
    """
    for files in block_files(table, read_summary(table, plan), plan):
        if isinstance(files.part, RemotePath):
            opened = pa.PythonFile(files.part.open("rb"))
        else:  # mapped, so that only the pages in use are in memory
            opened = pa.memory_map(str(files.part))
        with opened as file:
            yield files, pa.ipc.open_file(file).read_all()


def _vector_arrays(predicted: dict[str, np.ndarray]) -> dict[str, pa.Array]:
    """Return the columns of vectors: one vector per text, or lists of tokens with a vector each."""
    if EMBEDDING in predicted:
        return {EMBEDDING: vector_array(predicted[EMBEDDING])}
    tokens, starts, ends, vectors = (predicted[name] for name in TOKEN_COLUMNS)
    # Texts have different numbers of tokens: Arrow's lists are offsets into flat columns.
    bounds = pa.array(offsets_of(np.array([len(row) for row in tokens], np.int64)), pa.int32())
    flat = (
        pa.array([token for row in tokens for token in row], pa.string()),
        pa.array(np.concatenate(list(starts)), pa.int32()),
        pa.array(np.concatenate(list(ends)), pa.int32()),
        vector_array(np.concatenate(list(vectors))),
    )
    return {
        name: pa.ListArray.from_arrays(bounds, values)
        for name, values in zip(TOKEN_COLUMNS, flat, strict=True)
    }


def vector_array(vectors: np.ndarray) -> pa.FixedSizeListArray:
    """Convert float32 [n, dimensions] to Arrow's lists of one length."""
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


def output_format(path: str) -> str:
    """Return `parquet`, `npy` or `jsonl` by the file name.

    Raises:
        UsageError: the name ends otherwise.
    """
    ending = Path(path).suffix.lower()
    if ending not in _WRITERS:
        raise UsageError(f"--output {path}: the name must end in {', '.join(_WRITERS)}")
    return ending.removeprefix(".")


def write_output(path: str, plan: ScoringPlan, counts: ScoringCounts) -> None:
    """Write all finished parts to one file atomically; its name decides the format.

    Args:
        path: of the output.
        plan: of the job.
        counts: of all parts.

    Raises:
        InputError: a Parquet source has changed.
    """
    with replacing_file(path_of(path)) as aside:
        _WRITERS[Path(path).suffix.lower()](aside, plan, counts)


def _write_parquet(path: Path, plan: ScoringPlan, counts: ScoringCounts) -> None:
    stored = _stored_fields(plan)
    types = counts.types
    # Columns of Parquet sources keep their types, which JSON has lost.
    fields = [stored.get(key) or pa.field(key, type_) for key, type_ in types.items()]
    vectors = [field for field in next(_parts(plan)).schema if field.name != ROW]
    schema = pa.schema([*fields, *vectors])
    with path.open("wb") as stream, pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        for table in plan.tables:
            for rows in _rows_of(table, plan, stored, types):
                for field in schema:
                    if field.name not in rows.column_names:
                        rows = rows.append_column(field, pa.nulls(len(rows), field.type))
                writer.write_table(rows.select(schema.names).cast(schema))


def _rows_of(
    table: ScoredTable,
    plan: ScoringPlan,
    stored: Mapping[str, pa.Field],
    types: Mapping[str, pa.DataType],
) -> Iterator[pa.Table]:
    """Yield each part's rows, with columns from the stored source or JSON, and their vectors."""
    summary = read_summary(table, plan)
    again: list[str] = []  # columns that are read from the source again
    if table.source_format == "parquet":
        again = [key for key in summary.keys if key in stored]
    written = [key for key in types if key not in stored]
    with contextlib.ExitStack() as stack:
        source = None
        if again:
            source = stack.enter_context(contextlib.closing(SourceRows(table, plan, again)))
        for files, part in read_parts(plan, table):
            columns = {name: part[name] for name in part.column_names if name != ROW}
            if source is not None:
                kept = source.next_kept(files, len(part))
                columns.update(zip(kept.column_names, kept.columns, strict=True))
            if written:
                rows = [json.loads(row) for row in part[ROW].to_pylist()]
                columns.update((key, column_array(rows, key, types[key])) for key in written)
            if len(part):
                yield pa.table(columns)
        if source is not None:
            source.check_rows(summary.rows_in, is_all=not plan.limit)


def _stored_fields(plan: ScoringPlan) -> dict[str, pa.Field]:
    """Return columns that keep their Parquet type: those of one type in all tables."""
    fields: dict[str, pa.Field] = {}
    others: set[str] = set()
    for table in plan.tables:
        summary = read_summary(table, plan)
        if not summary.rows_in:
            continue
        if table.source_format != "parquet":
            others.update(summary.keys)
            continue
        with contextlib.closing(SourceRows(table, plan)) as source:
            for field in source.schema:
                known = fields.get(field.name)
                if known is None or pa.types.is_null(known.type):
                    fields[field.name] = field.with_nullable(True)
                elif known.type != field.type and not pa.types.is_null(field.type):
                    others.add(field.name)
    return {name: field for name, field in fields.items() if name not in others}


def _parts(plan: ScoringPlan) -> Iterator[pa.Table]:
    """Yield the parts of all tables that have rows."""
    for table in plan.tables:
        for _, part in read_parts(plan, table):
            if len(part):
                yield part


def _write_npy(path: Path, plan: ScoringPlan, counts: ScoringCounts) -> None:
    with path.open("wb") as stream:
        for number, part in enumerate(_parts(plan)):
            column = part[EMBEDDING]
            if number == 0:
                shape = (counts.rows_out, column.type.list_size)
                np.lib.format.write_array_header_1_0(
                    stream, {"descr": "<f4", "fortran_order": False, "shape": shape}
                )
            for chunk in column.chunks:
                stream.write(chunk.flatten().to_numpy().astype("<f4", copy=False).tobytes())


def _write_json_lines(path: Path, plan: ScoringPlan, counts: ScoringCounts) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for part in _parts(plan):
            if EMBEDDING in part.column_names:
                vectors = _vectors_as_json(part[EMBEDDING].combine_chunks())
                lines: Iterator[str] = (f'"{EMBEDDING}": {vector}' for vector in vectors)
            else:
                lines = _token_json(part)
            for row, added in zip(part[ROW].to_pylist(), lines, strict=True):
                stream.write(f"{row[:-1].rstrip()}, {added}}}\n")


def _token_json(part: pa.Table) -> Iterator[str]:
    """Yield the keys of tokens, places and vectors of each row, as the end of a JSON object."""
    tokens = part[_TOKENS].to_pylist()
    starts = part[_STARTS].to_pylist()
    ends = part[_ENDS].to_pylist()
    vectors = iter(_vectors_as_json(part[_VECTORS].combine_chunks().flatten()))
    for row, first, last in zip(tokens, starts, ends, strict=True):
        own = ", ".join(next(vectors) for _ in row)
        yield (
            f'"{_TOKENS}": {json.dumps(row, ensure_ascii=False)}, "{_STARTS}": {first}, '
            f'"{_ENDS}": {last}, "{_VECTORS}": [{own}]'
        )


def _vectors_as_json(vectors: pa.FixedSizeListArray) -> list[str]:
    """Write each vector as a JSON list of the shortest decimals that give the same float32."""
    # Arrow writes float32 in a compiled loop; Python's json would first widen it to float64.
    numbers = vectors.flatten().cast(pa.string()).to_pylist()
    size = vectors.type.list_size
    return [
        f"[{', '.join(numbers[begin : begin + size])}]" for begin in range(0, len(numbers), size)
    ]


_WRITERS: dict[str, Callable[[Path, ScoringPlan, ScoringCounts], None]] = {
    ".parquet": _write_parquet,
    ".npy": _write_npy,
    ".jsonl": _write_json_lines,
}
