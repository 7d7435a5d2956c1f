"""Opening Parquet files, and how many of their rows may be decoded at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.file_names import compression_of
from bert_tf.data.tables.formats.parquet_pages import largest_repeated_value
from bert_tf.data.tables.formats.parquet_types import batch_without_views
from bert_tf.data.tables.text_files import Opener

_BUFFER_BYTES = 8 << 20  # read from storage at once
_BATCH_ROWS = 1024  # rows decoded at once
_BATCH_BYTES = 16 << 20  # fewer rows where they are long
_REPEATED_BYTES = 512 << 20  # and where all rows may hold the longest value of a dictionary
_VALUE_BYTES = 16  # that a value takes at least once it is decoded, an item of a list too
_TEXT_KINDS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,  # some writers do not say that their bytes are UTF-8
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)


@contextmanager
def open_parquet(path: str, opener: Opener) -> Iterator[tuple[BinaryIO, pq.ParquetFile]]:
    """Opens a Parquet file: its bytes, and what Arrow reads of them.

    Args:
        path: the file.
        opener: opens the file, which may be on other storage.

    Raises:
        UsageError: the file cannot be opened, or is compressed as a whole.
        InputError: this is no Parquet file, or it is damaged (also while reading).
    """
    if compression_of(path) is not None:
        raise UsageError(
            f"{path}: Parquet is compressed inside and has to be read at any place; unpack the file"
        )
    with opener(path) as stream:
        try:
            yield stream, pq.ParquetFile(stream, buffer_size=_BUFFER_BYTES)
        except (pa.ArrowException, OSError) as error:
            message = next(iter(str(error).splitlines()), type(error).__name__)
            raise InputError(
                f"{path}: cannot be read as Parquet ({message}); make or download it again"
            ) from None


def parquet_schema(path: str, dialect: TableDialect, opener: Opener) -> pa.Schema:
    """The names and types of a file's columns.

    Raises:
        InputError: the file is damaged, or has two columns of one name.
        UsageError: it cannot be read, or was said to have no header.
    """
    dialect.check_has_names(path, "columns of Parquet have names")
    with open_parquet(path, opener) as (_, file):
        schema = file.schema_arrow
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise InputError(
                f"{path}: column {name!r} appears twice; rename or remove one of the two"
            )
    return schema


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts, in a dictionary or not."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(is_kind(kind) for is_kind in _TEXT_KINDS)


def read_batches(
    stream: BinaryIO, file: pq.ParquetFile, group: int, columns: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a row group, as many at once as take bounded memory, without views.

    Args:
        stream: the bytes of the file.
        file: what Arrow reads of them.
        group: number of the row group.
        columns: names of those to decode.
    """
    row_group = file.metadata.row_group(group)
    leaves = [
        leaf
        for leaf in map(row_group.column, range(row_group.num_columns))
        if _is_in_one_of(leaf.path_in_schema, columns)
    ]
    rows = max(row_group.num_rows, 1)
    size = sum(leaf.total_uncompressed_size + _VALUE_BYTES * leaf.num_values for leaf in leaves)
    values_per_row = max((-(-leaf.num_values // rows) for leaf in leaves), default=1)
    repeated = sum(largest_repeated_value(stream, leaf) for leaf in leaves) * values_per_row
    most_rows = min(_BATCH_ROWS, _BATCH_BYTES // (size // rows + 1))
    batches = file.iter_batches(
        batch_size=max(min(most_rows, _REPEATED_BYTES // max(repeated, 1)), 1),
        row_groups=[group],
        columns=list(columns),
    )
    yield from map(batch_without_views, batches)


def _is_in_one_of(path: str, columns: Collection[str]) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in columns)
