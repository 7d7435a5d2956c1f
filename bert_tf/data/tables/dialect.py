"""How a table is written, where the end of its file's name does not say it, and its limits."""

from __future__ import annotations

import codecs
import dataclasses
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.tables import RowSection, TableSection

INVALID_UTF8 = "invalid UTF-8"


def invalid_text(encoding: str) -> str:
    """The reason for bytes that are not text of an encoding, as Python names it."""
    is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    return INVALID_UTF8 if is_utf8 else f"invalid {encoding}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableDialect:
    """What has to be known to read a table.

    Attributes:
        encoding: of the file, as Python names it.
        has_header: whether the first line of CSV and TSV names the columns; without it they are
            named `1`, `2`, ….
        max_row_characters: longer rows are rejected.
        max_table_megabytes: memory that the rows of a file may take where it is read whole.
    """

    encoding: str = "utf-8"
    has_header: bool = True
    max_row_characters: int = RowSection.max_row_characters
    max_table_megabytes: float = TableSection.max_table_megabytes

    @classmethod
    def of(cls, config: RowSection) -> TableDialect:
        """The dialect that a config names."""
        dialect = cls(
            encoding=config.encoding,
            has_header=config.header,
            max_row_characters=config.max_row_characters,
        )
        if isinstance(config, TableSection):
            return dataclasses.replace(dialect, max_table_megabytes=config.max_table_megabytes)
        return dialect

    def check_has_names(self, path: str | Path, why: str) -> None:
        """Refuses `--no-header` for a format whose columns have names without a header.

        Raises:
            UsageError: it was given; `why` says what has names.
        """
        if not self.has_header:
            raise UsageError(f"{path}: --no-header is for CSV and TSV; {why}")

    @property
    def invalid_text(self) -> str:
        """The reason for which rows with bytes of another encoding are rejected."""
        return invalid_text(self.encoding)


PLAIN = TableDialect()


def numbered_columns(count: int) -> tuple[str, ...]:
    """The names of the columns of a table without a header."""
    return tuple(str(number) for number in range(1, count + 1))
