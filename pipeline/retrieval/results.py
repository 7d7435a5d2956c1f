"""Neighbors as rows of CSV or JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from bert_tf.base.errors import UsageError
from bert_tf.base.files import replacing_file
from pipeline.beam.stored_path import path_of
from pipeline.embedding.vectors import TextVectors
from pipeline.retrieval.neighbors import NONE, Neighbors

COLUMNS = ("query_row", "query", "rank", "corpus_row", "score", "text")
ENDINGS = (".jsonl", ".csv")
_SCORE_DIGITS = 6


def check_output(path: str) -> None:
    """Refuses an output of another format.

    Raises:
        UsageError: its name ends otherwise.
    """
    if Path(path).suffix.lower() not in ENDINGS:
        raise UsageError(f"--output {path}: the name must end in {' or '.join(ENDINGS)}")


def write_results(path: str, found: Neighbors, queries: TextVectors, corpus: TextVectors) -> int:
    """Writes a row for each neighbor, queries in their order, the nearest first.

    Args:
        path: its end decides the format.
        found: of all queries.
        queries, corpus: with their texts, if they have any.

    Returns:
        The number of rows.
    """
    number = 0
    with (
        replacing_file(path_of(path)) as aside,
        aside.open("w", encoding="utf-8", newline="") as stream,
    ):
        if Path(path).suffix.lower() == ".csv":
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(COLUMNS)
            for row in _rows(found, queries, corpus):
                writer.writerow(row)
                number += 1
            return number
        for row in _rows(found, queries, corpus):
            line = json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False)
            stream.write(f"{line}\n")
            number += 1
    return number


def _rows(found: Neighbors, queries: TextVectors, corpus: TextVectors) -> Iterator[tuple[Any, ...]]:
    for query, (rows, scores) in enumerate(zip(found.rows, found.scores, strict=True)):
        text = _text(queries.texts, query)
        for rank, (row, score) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True), 1):
            if row != NONE:
                rounded = round(score, _SCORE_DIGITS)
                yield query, text, rank, row, rounded, _text(corpus.texts, row)


def _text(texts: pa.ChunkedArray | None, row: int) -> str | None:
    return None if texts is None else texts[row].as_py()
