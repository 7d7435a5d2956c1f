"""CSV (RFC 4180, quoted cells may hold line ends) and TSV (no quoting): a document per row."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.columns import check_columns
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.csv_records import (
    OPEN_AT_END,
    SOUND,
    Records,
    count_line_ends,
    field_bytes,
    find_records,
)
from bert_tf.data.tables.formats.delimited import are_utf8, read_table_header, row_reject
from pipeline.beam.storage import open_stored
from pipeline.corpus.blocks.raw_block import RawBlock, Texts, block_of_texts
from pipeline.corpus.readers.chunks import Chunk
from pipeline.corpus.readers.splits import ChunkReader


@dataclasses.dataclass(frozen=True)
class DelimitedReader(ChunkReader):
    """Reads chunks of a CSV or TSV file, whose first record names the columns or is a row.

    Attributes:
        delimiter: between fields.
        has_quotes: whether fields may be quoted.
        column: place of the text column, from 0.
        num_columns: fields every record has to have.
    """

    delimiter: str
    has_quotes: bool
    column: int
    num_columns: int

    @classmethod
    def for_csv(cls, path: str, config: CorpusSection) -> DelimitedReader:
        """A reader of values separated by comma, semicolon or tab."""
        return cls._for_table(path, config, has_quotes=True)

    @classmethod
    def for_tsv(cls, path: str, config: CorpusSection) -> DelimitedReader:
        """A reader of tab-separated values."""
        return cls._for_table(path, config, has_quotes=False)

    @classmethod
    def _for_table(cls, path: str, config: CorpusSection, *, has_quotes: bool) -> DelimitedReader:
        """With the place of the text column.

        Raises:
            InputError: there is no header, or it names two columns alike.
            UsageError: it does not name the text column.
        """
        dialect = TableDialect.of(config)
        header = read_table_header(path, dialect, has_quotes=has_quotes, opener=open_stored)
        check_columns(path, header, header.columns, [config.text_column])
        return cls(
            header.delimiter,
            has_quotes,
            header.columns.index(config.text_column),
            len(header.columns),
        )

    def find_last_border(self, data: bytes) -> int:
        """Offset of the last beginning of a record in `data` that another one precedes, 0 if there
        is none."""
        if not self.has_quotes:
            border = data.rfind(b"\n") + 1
            return border if data[:border].strip(b" \r\n") else 0
        records = self._records(data, 1)
        if not len(records.starts):
            return 0
        # The last record may continue after `data`, and a quote not closed yet may still be.
        unsure = np.flatnonzero(records.faults == OPEN_AT_END)
        last = int(unsure[0]) if len(unsure) else len(records.starts) - 1
        return int(records.starts[last]) if last else 0

    def count_lines(self, data: bytes, stop: int) -> int:
        """Line ends before a place: in CSV also a CR alone is one."""
        if not self.has_quotes:
            return data.count(b"\n", 0, stop)
        return count_line_ends(np.frombuffer(data, np.uint8, stop))

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        """Reads whole records; the first of the file is the header, if there is one."""
        records = self._records(chunk.data, chunk.first_line)
        data = np.frombuffer(chunk.data, np.uint8)
        is_row = np.ones(len(records.lines), np.bool_)
        if chunk.index == 0 and self.dialect.has_header:
            is_row[:1] = False
        counts = np.diff(records.offsets)
        is_sound = is_row & (records.faults == SOUND) & (counts == self.num_columns)
        is_sound[is_sound] = are_utf8(data, records.starts[is_sound], records.stops[is_sound])
        fields = records.offsets[:-1][is_sound] + self.column
        copied, offsets = field_bytes(data, records, fields)
        return block_of_texts(
            path,
            chunk.index,
            Texts(
                data=copied,
                starts=offsets[:-1],
                stops=offsets[1:],
                lines=records.lines[is_sound],
            ),
            rejects=[
                row_reject(path, records, record, self.num_columns, self.dialect)
                for record in np.flatnonzero(is_row & ~is_sound).tolist()
            ],
            dropped={"blank line": records.blank_lines} if records.blank_lines else {},
        )

    def _records(self, data: bytes, first_line: int) -> Records:
        return find_records(
            np.frombuffer(data, np.uint8),
            delimiter=ord(self.delimiter),
            has_quotes=self.has_quotes,
            first_line=first_line,
            longest=self.dialect.max_row_characters,
        )
