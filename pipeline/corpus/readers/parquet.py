"""Parquet: a document per row; a row group is a split."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.parquet_file import is_text, open_parquet, read_batches
from bert_tf.data.tables.reasons import column_is_empty
from bert_tf.data.tables.rejects import Reject
from pipeline.beam.storage import open_stored
from pipeline.corpus.blocks.raw_block import RawBlock, Texts, block_of_texts
from pipeline.corpus.readers.splits import Split


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
        with open_parquet(path, open_stored) as (_, file):
            schema = file.schema_arrow
        found = schema.names.count(config.text_column)
        if found != 1:
            what = f"{found} columns are named" if found else "no column"
            raise UsageError(
                f"{path}: {what} {config.text_column!r}; columns found: "
                f"{', '.join(schema.names)} (choose one with --text-column)"
            )
        kind = schema.field(config.text_column).type
        if not is_text(kind):
            raise UsageError(
                f"{path}: column {config.text_column!r} holds {kind}, not text; columns of text: "
                f"{', '.join(f.name for f in schema if is_text(f.type)) or 'none'} "
                "(choose one with --text-column)"
            )
        return cls(config.text_column)

    def resolved(self, path: str) -> ParquetReader:
        """Itself: nothing depends on the whole file."""
        del path
        return self

    def splits(self, path: str, block_bytes: int) -> Iterator[Split]:
        """A split per row group."""
        del block_bytes
        with open_parquet(path, open_stored) as (_, file):
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
        with open_parquet(path, open_stored) as (stream, file):
            pending: list[pa.LargeBinaryArray] = []
            for batch in read_batches(stream, file, split.index, [self.column]):
                pending.append(batch.column(0).cast(pa.large_binary()))
                if sum(part.nbytes for part in pending) >= block_bytes:
                    yield self._block(path, row, pa.concat_arrays(pending))
                    row += sum(map(len, pending))
                    pending = []
            if pending:
                yield self._block(path, row, pa.concat_arrays(pending))

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
