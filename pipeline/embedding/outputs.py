"""Rows and their vectors as Parquet, NumPy arrays or JSON lines."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bert_tf.base.atomic_files import replacing_file
from bert_tf.base.errors import UsageError
from bert_tf.embeddings.settings import EMBEDDING, TOKEN_COLUMNS
from pipeline.beam.stored_path import path_of
from pipeline.embedding.parts import ROW
from pipeline.scoring.row_values import column_array

_TOKENS, _STARTS, _ENDS, _VECTORS = TOKEN_COLUMNS


def output_format(path: str) -> str:
    """`parquet`, `npy` or `jsonl`, by the end of a file's name.

    Raises:
        UsageError: the name ends otherwise.
    """
    ending = Path(path).suffix.lower()
    if ending not in _WRITERS:
        raise UsageError(f"--output {path}: the name must end in {', '.join(_WRITERS)}")
    return ending.removeprefix(".")


def write_output(
    path: str, parts: Iterable[pa.Table], *, rows: int, types: dict[str, pa.DataType]
) -> None:
    """Writes all parts to one file, which appears whole.

    Args:
        path: its end decides the format.
        parts: of `read_parts`; one at least.
        rows: of all parts.
        types: of the columns of Parquet, from `column_types`.
    """
    with replacing_file(path_of(path)) as aside:
        _WRITERS[Path(path).suffix.lower()](aside, iter(parts), rows, types)


def _write_parquet(
    path: Path, parts: Iterator[pa.Table], _rows: int, types: dict[str, pa.DataType]
) -> None:
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(path.open("wb"))
        writer: pq.ParquetWriter | None = None
        for part in parts:
            rows = [json.loads(row) for row in part[ROW].to_pylist()]
            columns = {key: column_array(rows, key, type_) for key, type_ in types.items()}
            table = pa.table({**columns, **_without_rows(part)})
            if writer is None:
                writer = stack.enter_context(
                    pq.ParquetWriter(stream, table.schema, compression="zstd")
                )
            writer.write_table(table)


def _write_npy(
    path: Path, parts: Iterator[pa.Table], rows: int, _types: dict[str, pa.DataType]
) -> None:
    with path.open("wb") as stream:
        for number, part in enumerate(parts):
            column = part[EMBEDDING]
            if number == 0:
                shape = (rows, column.type.list_size)
                np.lib.format.write_array_header_1_0(
                    stream, {"descr": "<f4", "fortran_order": False, "shape": shape}
                )
            for chunk in column.chunks:
                stream.write(chunk.flatten().to_numpy().astype("<f4", copy=False).tobytes())


def _write_json_lines(
    path: Path, parts: Iterator[pa.Table], _rows: int, _types: dict[str, pa.DataType]
) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for part in parts:
            lines = _vector_json(part) if EMBEDDING in part.column_names else _token_json(part)
            for row, added in zip(part[ROW].to_pylist(), lines, strict=True):
                stream.write(f"{row[:-1].rstrip()}, {added}}}\n")


def _vector_json(part: pa.Table) -> Iterator[str]:
    for vector in _vectors_as_json(part[EMBEDDING].combine_chunks()):
        yield f'"{EMBEDDING}": {vector}'


def _token_json(part: pa.Table) -> Iterator[str]:
    tokens, starts, ends = (part[name].to_pylist() for name in (_TOKENS, _STARTS, _ENDS))
    vectors = iter(_vectors_as_json(part[_VECTORS].combine_chunks().flatten()))
    for row, first, last in zip(tokens, starts, ends, strict=True):
        own = ", ".join(next(vectors) for _ in row)
        yield (
            f'"{_TOKENS}": {json.dumps(row, ensure_ascii=False)}, "{_STARTS}": {first}, '
            f'"{_ENDS}": {last}, "{_VECTORS}": [{own}]'
        )


def _vectors_as_json(vectors: pa.FixedSizeListArray) -> list[str]:
    """Lists of the shortest decimals that give back each float32."""
    numbers = vectors.flatten().cast(pa.string()).to_pylist()
    size = vectors.type.list_size
    return [
        f"[{', '.join(numbers[begin : begin + size])}]" for begin in range(0, len(numbers), size)
    ]


def _without_rows(part: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: part[name] for name in part.column_names if name != ROW}


_Writer = Callable[[Path, Iterator[pa.Table], int, dict[str, pa.DataType]], None]
_WRITERS: dict[str, _Writer] = {
    ".parquet": _write_parquet,
    ".npy": _write_npy,
    ".jsonl": _write_json_lines,
}
