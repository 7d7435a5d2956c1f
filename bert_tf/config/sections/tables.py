"""The keys of every section whose job reads rows of tables."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from bert_tf.config.section import Bounds, Section, advanced, option

COLUMN = "_column"  # the end of the names of keys that hold a column of tables


BatchTokens = Annotated[int, Bounds(1, 100_000_000)]


def batch_tokens_option() -> Any:
    return advanced("tokens per batch, including padding", 2048, affects_output=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowSection(Section):
    """The format of rows, as far as the file name does not decide it.

    A subclass declares which of its columns all tables have, named or not.
    """

    always_needed: ClassVar[tuple[str, ...]] = ()

    encoding: str = option(
        "character encoding of the input files, as a Python name: latin-1, cp1252, utf-16, …",
        "utf-8",
    )
    header: bool = option(
        "read column names from the first line of CSV and TSV files; without a header, columns "
        "are numbered from 1 (--text-column 2)",
        True,
        flag="--header/--no-header",
    )
    max_row_characters: Annotated[int, Bounds(1000, 1 << 30)] = advanced(
        "maximum characters per row; longer rows are rejected", 1 << 24
    )

    @property
    def needed_columns(self) -> dict[str, str]:
        """Columns that the options require of every table, and the key of each."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        found: dict[str, str] = {}
        for key, default in defaults.items():
            columns = getattr(self, key)
            if not key.endswith(COLUMN) or columns is None:
                continue
            if key in self.always_needed or columns != default:
                names = (columns,) if isinstance(columns, str) else columns
                found.update(dict.fromkeys(names, key))
        return found

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=self.encoding)
        except LookupError:
            yield (
                f"encoding: {self.encoding!r} is not known; the usual ones are utf-8, latin-1, "
                "cp1252, utf-16, gb18030, shift_jis"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableSection(RowSection):
    max_table_megabytes: Annotated[float, Bounds(minimum=1.0)] = advanced(
        "maximum memory for the rows of a file that is loaded completely, as in finetune",
        4000.0,
    )
