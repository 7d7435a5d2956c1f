"""Parquet: a document per row; a row group is a split."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bert_tf.base.errors import UsageError
from bert_tf.base.kernels import count_characters
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.cells import check_columns
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.formats.delimited import too_long
from bert_tf.data.tables.formats.parquet import is_text, open_parquet, parquet_schema, read_batches
from bert_tf.data.tables.rejects import Reject, column_is_empty
from pipeline.beam.storage import open_stored
from pipeline.corpus.evidence import Evidence, tallied_columns, tally_columns
from pipeline.corpus.raw_block import RawBlock, Texts
from pipeline.corpus.readers.splits import Split


@dataclasses.dataclass(frozen=True)
class ParquetReader:
    """Reads one column of a Parquet file; the line of a reject is the row, from 1."""

    column: str
    dialect: TableDialect = PLAIN
    tallied: tuple[str, ...] = ()  # further columns, for `tally_columns`

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> ParquetReader:
        """Check the column; InputError for damage, UsageError without a text column."""
        dialect = TableDialect.of(config)
        schema = parquet_schema(path, dialect, open_stored)
        check_columns(path, None, schema.names, [config.text_column])
        kind = schema.field(config.text_column).type
        texts = [field.name for field in schema if is_text(field.type)]
        if not is_text(kind):
            raise UsageError(
                f"{path}: column {config.text_column!r} holds {kind}, not text; columns of text: "
                f"{', '.join(texts) or 'none'} (choose one with --text-column)"
            )
        return cls(config.text_column, dialect, tallied_columns(texts, config))

    def resolved(self, path: str, *, is_sample: bool = False) -> ParquetReader:
        """See `Reader.resolved`."""
        del path, is_sample
        return self

    def splits(self, path: str, block_bytes: int) -> Iterator[Split]:
        del block_bytes
        with open_parquet(path, open_stored) as (_, file):
            first = 0
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                yield Split(index=group, offset=first, length=rows, first_line=first + 1)
                first += rows

    def read_split(self, path: str, split: Split, block_bytes: int) -> Iterator[RawBlock]:
        row = split.offset
        with open_parquet(path, open_stored) as (stream, file):
            row_bytes = self._group_bytes(file, split.index) / max(split.length, 1)
            columns = [self.column, *self.tallied]
            pending: list[pa.RecordBatch] = []
            for batch in read_batches(stream, file, split.index, columns):
                cells = [batch.column(name).cast(pa.large_binary()) for name in columns]
                pending.append(pa.record_batch(cells, columns))
                if sum(part.column(0).nbytes for part in pending) >= block_bytes:
                    yield self._block(path, row, pending, row_bytes)
                    row += sum(part.num_rows for part in pending)
                    pending = []
            if pending:
                yield self._block(path, row, pending, row_bytes)

    def whole_size(self, path: str, stored_bytes: int) -> float:
        del stored_bytes
        with open_parquet(path, open_stored) as (_, file):
            groups = range(file.num_row_groups)
            return float(sum(self._group_bytes(file, group) for group in groups))

    def _group_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """Return the bytes of the column in a row group before compression, as encoded."""
        metadata = file.metadata.row_group(group)
        columns = (metadata.column(place) for place in range(metadata.num_columns))
        return sum(
            column.total_uncompressed_size
            for column in columns
            if column.path_in_schema == self.column
        )

    def _block(
        self, path: str, row: int, parts: list[pa.RecordBatch], row_bytes: float
    ) -> RawBlock:
        texts, *others = map(pa.concat_arrays, zip(*parts, strict=True))
        is_null = np.asarray(texts.is_null().to_numpy(zero_copy_only=False))
        data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        offsets = np.frombuffer(texts.buffers()[1], np.int64)
        offsets = offsets[texts.offset : texts.offset + len(texts) + 1]
        longest = self.dialect.max_row_characters
        is_long = np.diff(offsets) > longest  # in bytes
        for place in np.flatnonzero(is_long).tolist():
            is_long[place] = count_characters(data, offsets[place], offsets[place + 1]) > longest
        has_text = ~is_null & ~is_long
        rejects = []
        for place in np.flatnonzero(~has_text).tolist():
            line = row + 1 + place
            if is_null[place]:
                rejects.append(Reject(path, line, column_is_empty(self.column)))
            else:
                rejects.append(too_long(path, line, self.dialect))
        tallied = {
            name: cells.filter(pa.array(has_text))
            for name, cells in zip(self.tallied, others, strict=True)
        }
        return RawBlock(
            source=path,
            index=row,
            texts=Texts(
                data=data,
                starts=offsets[:-1][has_text],
                stops=offsets[1:][has_text],
                lines=np.flatnonzero(has_text) + row + 1,
            ),
            evidence=Evidence(rejects=rejects, tallies=tally_columns(tallied)),
            size=len(texts) * row_bytes,
        )
