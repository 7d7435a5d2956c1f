"""The keys of jobs that read rows of tables, and of those that Beam runs."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from bert_tf.config.section import Section, advanced, flag_text, option, optional
from bert_tf.config.values import Bounds

MAX_LOCAL_WORKERS = 512


class RunnerConfig(Section, section_name="runner"):
    """The Beam runner of a data or scoring job and the options passed on to it."""

    runner: str = option("Beam runner", choices=("local", "prism", "flink", "spark", "dataflow"))
    workers: Annotated[int, Bounds(0, 10_000)] = option(
        "worker processes of the local runner (0: from the input size; 1 for score); "
        "parallelism on flink, workers on dataflow",
        0,
    )
    options: tuple[str, ...] = advanced(
        "Beam pipeline options, as on the command line of Beam (--flink_master=host:8081)", ()
    )

    def faults(self) -> Iterator[str]:
        if self.runner in ("local", "prism") and self.workers > MAX_LOCAL_WORKERS:
            yield (
                f"workers: is {self.workers}, but they are local processes; use at most "
                f"{MAX_LOCAL_WORKERS}, or 0 to choose by the input size"
            )


class StorageConfig(Section, section_name="storage"):
    """How a job without a runner reaches `s3://`, `gs://`, `hdfs://` and `azfs://`."""

    options: tuple[str, ...] = advanced(
        "options of Beam's file systems, as on the command line of Beam "
        "(--s3_region_name=eu-west-1, --hdfs_host=namenode)",
        (),
    )


COLUMN = "_column"  # the end of the names of keys that hold a column of tables
ID_COLUMN = f"id{COLUMN}"
NO_IDS = "none"  # in place of a column of ids

BatchTokens = Annotated[int, Bounds(1, 100_000_000)]


def batch_tokens_option() -> Any:
    """Declare the key for the tokens of a batch."""
    return advanced("tokens per batch, including padding", 2048, affects_output=False)


def min_ceiling_option() -> Any:
    """Return the key of jobs that measure the ceiling of labeled rows."""
    return option(
        "stop before the work if the labels let even a perfect model reach no more than this "
        "fraction of the metric (0: never)",
        0.5,
        affects_output=False,
    )


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
        keys: dict[str, str] = {}
        for field in dataclasses.fields(self):
            key = field.name
            columns = getattr(self, key)
            is_named = key in self.always_needed or columns not in (None, field.default)
            if key == ID_COLUMN and columns == NO_IDS:
                continue
            if key.endswith(COLUMN) and columns is not None and is_named:
                names = (columns,) if isinstance(columns, str) else columns
                keys.update(dict.fromkeys(names, key))
        return keys

    def faults(self) -> Iterator[str]:
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=self.encoding)
        except LookupError:
            yield (
                f"encoding: {self.encoding!r} is unknown; common ones are utf-8, latin-1, cp1252, "
                "utf-16, gb18030, shift_jis"
            )


class TableSection(RowSection):
    """Keys of all jobs that read tables."""

    id_column: str | None = optional(
        "column with a name of its own for each row, which messages, predictions, rejects and "
        f"pages show; {NO_IDS} for no ids (default: the first column whose values look like ids "
        "and are all different in the first 1,024 rows)"
    )
    max_table_megabytes: Annotated[float, Bounds(minimum=1.0)] = advanced(
        "maximum memory for the rows of a file that is loaded completely, as in finetune",
        4000.0,
    )

    def faults(self) -> Iterator[str]:
        if self.id_column in (None, NO_IDS):
            return
        for field in dataclasses.fields(self):
            columns = getattr(self, field.name)
            names = columns if isinstance(columns, tuple) else (columns,)
            is_column = field.name.endswith(COLUMN) and field.name != ID_COLUMN
            if is_column and self.id_column in names:
                yield (
                    f"{ID_COLUMN}: is {self.id_column!r}, which is read as {flag_text(field)}; "
                    "name a column that only tells the rows apart"
                )
                return
