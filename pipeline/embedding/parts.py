"""Blocks of vectors as files, in Arrow's format whatever the output's is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.base.arrays import offsets_of
from bert_tf.base.files import RemotePath, replacing_file
from bert_tf.base.json_files import read_sealed
from bert_tf.embeddings.settings import EMBEDDING, TEXT_TOKENS, TOKEN_COLUMNS, EmbedderSettings
from pipeline.scoring.blocks import RowBlock, read_summary
from pipeline.scoring.join import block_files
from pipeline.scoring.parts import (
    KINDS,
    ROWS_TRUNCATED,
    TOKENS,
    TOKENS_TRUNCATED,
    ScoredBlock,
    finish_part,
)
from pipeline.scoring.plan import BlockFiles, ScoringPlan
from pipeline.scoring.row_values import kinds_of
from pipeline.scoring.tables import ScoredTable

ROW = "row"


def write_vectors(scored: ScoredBlock, plan: ScoringPlan) -> None:
    """Writes a block's rows, as JSON objects, and their vectors; its rejects and counts last.

    Args:
        scored: with the outputs of an `Embedder`.
        plan: the job, whose engine is an `EmbedderSettings`.
    """
    block, predicted = scored.block, scored.predicted
    assert isinstance(plan.engine, EmbedderSettings)
    rows = _rows_as_json(block)
    arrays = {ROW: pa.array(rows, pa.string())}
    if rows:
        arrays.update(_vector_arrays(predicted))
    with replacing_file(block.reference.files.part) as aside:
        part = pa.table(arrays)
        with aside.open("wb") as file, pa.ipc.new_file(file, part.schema) as writer:
            writer.write_table(part)
    tokens, most = predicted[TEXT_TOKENS], plan.engine.max_seq_length
    facts = {
        KINDS: kinds_of(map(json.loads, rows)),
        TOKENS: int(tokens.sum()),
        ROWS_TRUNCATED: int((tokens > most).sum()),
        TOKENS_TRUNCATED: int(np.maximum(tokens - most, 0).sum()),
    }
    finish_part(scored, plan, rows_out=len(rows), rejects=block.rejects, facts=facts)


def finished_parts(plan: ScoringPlan) -> list[dict[str, Any]]:
    """What `write_vectors` noted of each part, in the order of tables and blocks."""
    return [
        read_sealed(files.done)
        for table in plan.tables
        for files in block_files(table, read_summary(table, plan), plan)
    ]


def read_parts(plan: ScoringPlan, table: ScoredTable) -> Iterator[tuple[BlockFiles, pa.Table]]:
    """The parts of a table in order: `row` and, where there are rows, columns of vectors."""
    for files in block_files(table, read_summary(table, plan), plan):
        with _opened(files.part) as file:
            yield files, pa.ipc.open_file(file).read_all()


def _opened(part: Path) -> pa.NativeFile:
    if isinstance(part, RemotePath):
        return pa.PythonFile(part.open("rb"))
    return pa.memory_map(str(part))


def _rows_as_json(block: RowBlock) -> list[str]:
    if block.cells is None:  # JSON lines
        return block.raw_rows
    return [json.dumps(cells, ensure_ascii=False) for cells in block.cells]


def _vector_arrays(predicted: dict[str, np.ndarray]) -> dict[str, pa.Array]:
    if EMBEDDING in predicted:
        return {EMBEDDING: vector_array(predicted[EMBEDDING])}
    tokens, starts, ends, vectors = (predicted[name] for name in TOKEN_COLUMNS)
    bounds = pa.array(offsets_of(np.array([len(row) for row in tokens], np.int64)), pa.int32())
    flat = (
        pa.array([token for row in tokens for token in row], pa.string()),
        pa.array(_joined(starts), pa.int32()),
        pa.array(_joined(ends), pa.int32()),
        vector_array(_joined(vectors)),
    )
    return {
        name: pa.ListArray.from_arrays(bounds, values)
        for name, values in zip(TOKEN_COLUMNS, flat, strict=True)
    }


def vector_array(vectors: np.ndarray) -> pa.FixedSizeListArray:
    """Vectors as Arrow's lists of one length.

    Args:
        vectors: float32 [n, dimensions].
    """
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


def _joined(rows: np.ndarray) -> np.ndarray:
    return np.concatenate(list(rows))
