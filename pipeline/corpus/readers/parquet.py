"""Parquet: a document a row; a row group is a split."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.file_names import compression_of
from bert_tf.data.tables.reasons import column_is_empty
from bert_tf.data.tables.rejects import Reject
from pipeline.beam.storage import innermost_message, open_stored
from pipeline.corpus.blocks.raw_block import RawBlock, Texts, block_of_texts
from pipeline.corpus.parquet_pages import largest_repeated_value
from pipeline.corpus.readers.splits import Split

_BATCH_ROWS = 1024  # rows decoded at once; a block is made of as many batches as it takes
_BATCH_BYTES = 16 << 20  # fewer rows where texts are long
_REPEATED_BYTES = 512 << 20  # and where all rows may hold the longest value of a dictionary
_BUFFER_BYTES = 8 << 20  # read from storage at once
_TEXT_KINDS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,  # some writers do not say that their bytes are UTF-8
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)


@dataclasses.dataclass(frozen=True)
class ParquetReader:
    """Reads one column of a Parquet file; the line of a reject is the row, from 1."""

    column: str

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> ParquetReader:
        """The reader the configuration asks for.

        Raises:
            InputError: this is no Parquet file, or it is damaged.
            UsageError: the column is not there or holds no text, or the file is compressed as a
                whole.
        """
        if compression_of(path) is not None:
            raise UsageError(
                f"{path}: Parquet is compressed inside and has to be read at any place; "
                "unpack the file"
            )
        with _open(path) as file:
            schema = file.schema_arrow
        found = schema.names.count(config.text_column)
        if found != 1:
            what = f"{found} columns are named" if found else "no column"
            raise UsageError(
                f"{path}: {what} {config.text_column!r}; columns found: "
                f"{', '.join(schema.names)} (choose one with --text-column)"
            )
        kind = schema.field(config.text_column).type
        if not _is_text(kind):
            raise UsageError(
                f"{path}: column {config.text_column!r} holds {kind}, not text; columns of text: "
                f"{', '.join(f.name for f in schema if _is_text(f.type)) or 'none'} "
                "(choose one with --text-column)"
            )
        return cls(config.text_column)

    def resolved(self, path: str) -> ParquetReader:
        """Itself: nothing depends on the whole file."""
        del path
        return self

    def splits(self, path: str, block_bytes: int) -> Iterator[Split]:
        """A split a row group."""
        del block_bytes
        with _open(path) as file:
            first = 0
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                yield Split(index=group, offset=first, length=rows, first_line=first + 1)
                first += rows

    def read_split(self, path: str, split: Split, block_bytes: int) -> Iterator[RawBlock]:
        """Reads a row group in blocks of about `block_bytes` of text.

        Raises:
            InputError: the file is damaged.
        """
        row = split.offset
        with open_stored(path) as stream, _open(path) as file:
            column = self._chunk(file, split.index)
            repeated = largest_repeated_value(stream, column) if column else 0
            most_rows = max(_REPEATED_BYTES // max(repeated, 1), 1)
            pending: list[pa.LargeBinaryArray] = []
            for batch in self._batches(file, split.index, most_rows):
                pending.append(batch)
                if sum(part.nbytes for part in pending) >= block_bytes:
                    yield self._block(path, row, pa.concat_arrays(pending))
                    row += sum(map(len, pending))
                    pending = []
            if pending:
                yield self._block(path, row, pa.concat_arrays(pending))

    def _chunk(self, file: pq.ParquetFile, group: int) -> pq.ColumnChunkMetaData | None:
        row_group = file.metadata.row_group(group)
        columns = map(row_group.column, range(row_group.num_columns))
        return next((c for c in columns if c.path_in_schema == self.column), None)

    def _batches(
        self, file: pq.ParquetFile, group: int, most_rows: int
    ) -> Iterator[pa.LargeBinaryArray]:
        row_group = file.metadata.row_group(group)
        column = self._chunk(file, group)
        size = column.total_uncompressed_size if column else 0
        average = size // max(row_group.num_rows, 1) + 1
        for batch in file.iter_batches(
            batch_size=max(min(_BATCH_ROWS, most_rows, _BATCH_BYTES // average), 1),
            row_groups=[group],
            columns=[self.column],
        ):
            yield batch.column(0).cast(pa.large_binary())

    def _block(self, path: str, row: int, texts: pa.LargeBinaryArray) -> RawBlock:
        has_text = np.asarray(texts.is_valid().to_numpy(zero_copy_only=False))
        offsets = np.frombuffer(texts.buffers()[1], np.int64)
        offsets = offsets[texts.offset : texts.offset + len(texts) + 1]
        return block_of_texts(
            path,
            row,
            Texts(
                data=np.frombuffer(texts.buffers()[2] or b"", np.uint8),
                starts=offsets[:-1][has_text],
                stops=offsets[1:][has_text],
                lines=np.flatnonzero(has_text) + row + 1,
            ),
            rejects=[
                Reject(path, row + 1 + place, column_is_empty(self.column))
                for place in np.flatnonzero(~has_text).tolist()
            ],
            dropped={},
        )


@contextmanager
def _open(path: str) -> Iterator[pq.ParquetFile]:
    with open_stored(path) as stream:
        try:
            yield pq.ParquetFile(stream, buffer_size=_BUFFER_BYTES)
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{path}: cannot be read as Parquet ({innermost_message(error)}); "
                "make or download it again"
            ) from None


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(is_kind(kind) for is_kind in _TEXT_KINDS)
