"""What the name of a file says: the format of its rows, and how it is compressed."""

from __future__ import annotations

from pathlib import PurePosixPath

TABLE_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
"""Format by ending of tables: labeled rows, and the text column of a corpus."""

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Compression, as Arrow names it, by the last ending."""


def compression_of(path: str) -> str | None:
    """The compression that a file's name says: `gzip`, `bz2`, `zstd` or None."""
    return COMPRESSIONS.get(PurePosixPath(path).suffix.lower())


def name_without_compression(path: str) -> str:
    """The lower-case file name without the ending of its compression."""
    name = PurePosixPath(path).name.lower()
    return name.removesuffix(PurePosixPath(name).suffix) if compression_of(path) else name


def table_format_by_name(path: str) -> str | None:
    """The format of a table, compressed or not; None if the name is not that of a table."""
    return TABLE_FORMATS.get(PurePosixPath(name_without_compression(path)).suffix)
