"""How a table is written, by file name and config, and its limits.

Nothing here opens a file: only names and configs are read.
"""

from __future__ import annotations

import codecs
import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections.tables import NO_IDS, RowSection, TableSection

# Format by ending of tables: labeled rows, and the text column of a corpus
TABLE_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}

# Compression, as Arrow names it, by the last ending
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def compression_of(path: str) -> str | None:
    """Return the compression of a file by its name: `gzip`, `bz2`, `zstd` or None."""
    return COMPRESSIONS.get(PurePosixPath(path).suffix.lower())


def name_without_compression(path: str) -> str:
    """Return the file name in lower case, without folders and the extension of its compression."""
    name = PurePosixPath(path).name.lower()
    return name.removesuffix(PurePosixPath(name).suffix) if compression_of(path) else name


def table_format_by_name(path: str) -> str | None:
    """Return the format of a file by its name, compressed or not; None if it is no table."""
    return TABLE_FORMATS.get(PurePosixPath(name_without_compression(path)).suffix)


_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")


def spreadsheet_advice(path: str) -> str | None:
    """Return advice for a spreadsheet, known by its name; None for other files."""
    if not name_without_compression(path).endswith(_SPREADSHEETS):
        return None
    return (
        f"{path}: is a spreadsheet; save its sheet as CSV (in Excel: Save As, CSV UTF-8) and give "
        "that file"
    )


INVALID_UTF8 = "invalid UTF-8"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableDialect:
    """How a file of rows is written, and the limits for reading it."""

    encoding: str = "utf-8"  # of the file, as Python names it
    has_header: bool = True  # whether CSV and TSV name the columns; if not, they are `1`, `2`, …
    max_row_characters: int = RowSection.max_row_characters  # longer rows are rejected
    max_table_megabytes: float = TableSection.max_table_megabytes  # of a file read whole
    # column with the ids of rows; None if its values tell, NO_IDS for none
    id_column: str | None = NO_IDS

    @classmethod
    def of(cls, config: RowSection) -> TableDialect:
        """Return the dialect that a config describes.

        A section without `max_table_megabytes` gets the default; one without `id_column`, no ids.
        """
        table = config if isinstance(config, TableSection) else None
        return cls(
            encoding=config.encoding,
            has_header=config.header,
            max_row_characters=config.max_row_characters,
            max_table_megabytes=(table or TableSection).max_table_megabytes,
            id_column=table.id_column if table else NO_IDS,
        )

    def check_has_names(self, path: str | Path, why: str) -> None:
        """Raise UsageError if `--no-header` was given for a format whose columns have names.

        Args:
            path: named in the error.
            why: the end of the message, which says what has names.
        """
        if not self.has_header:
            raise UsageError(f"{path}: --no-header is for CSV and TSV; {why}")

    def check_no_id_column(self, path: str | Path, why: str) -> None:
        """Raise UsageError if `--id-column` names a column for a format without any.

        Args:
            path: named in the error.
            why: the end of the message, which says that there are no columns.
        """
        if self.id_column not in (None, NO_IDS):
            raise UsageError(f"{path}: --id-column {self.id_column}: {why}; leave it out")

    @property
    def invalid_text(self) -> str:
        """Return the reason of rejects for bytes that are not text of the encoding."""
        is_utf8 = codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")
        return INVALID_UTF8 if is_utf8 else f"invalid {self.encoding}"


PLAIN = TableDialect()

_ROW_BYTES = 100  # line number, places in lists; a reject takes about twice that


class TableBudget:
    """Memory limit for the rows of one file.

    The size of the file says little: ten megabytes of .gz may hold eight gigabytes.

    Args:
        path: named in the error.
        megabytes: limit in 10**6 bytes, of memory and not of the file.
    """

    def __init__(self, path: str | Path, megabytes: float):
        self._path = path
        self._megabytes = megabytes
        self._left = megabytes * 1e6

    def add(self, rows: int, texts: Iterable[str]) -> None:
        """Count rows and their texts; raise InputError beyond the budget."""
        self._left -= rows * _ROW_BYTES + sum(map(sys.getsizeof, texts))
        if self._left < 0:
            raise InputError(
                f"{self._path}: its rows take more than {self._megabytes:g} MB of memory; give "
                "fewer rows, or raise max_table_megabytes"
            )
