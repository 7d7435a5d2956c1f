"""CSV (RFC 4180, quoted cells may hold line ends) and TSV (no quoting): a document per row."""

from __future__ import annotations

import codecs
import dataclasses

import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.csv_records import (
    FAULT_REASONS,
    LONGEST_RECORD,
    OPEN_AT_END,
    SOUND,
    Records,
    count_line_ends,
    field_bytes,
    find_records,
)
from bert_tf.data.tables.delimiter import find_delimiter, first_cells
from bert_tf.data.tables.reasons import wrong_cells
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.text_files import has_surrogates
from pipeline.beam.files import UncompressedFile
from pipeline.corpus.blocks.raw_block import RawBlock, Texts, block_of_texts
from pipeline.corpus.readers.chunks import Chunk, cut_chunks
from pipeline.corpus.readers.splits import ChunkReader

_PEEKED_BYTES = 1 << 16


@dataclasses.dataclass(frozen=True)
class DelimitedReader(ChunkReader):
    """Reads chunks of a CSV or TSV file whose first record names the columns.

    Attributes:
        delimiter: between fields.
        has_quotes: whether fields may be quoted.
        column: place of the text column, from 0.
        num_columns: fields every record has to have.
    """

    delimiter: str
    has_quotes: bool
    column: int = 0
    num_columns: int = 0

    @classmethod
    def for_csv(cls, path: str, config: CorpusSection) -> DelimitedReader:
        """A reader of values separated by comma, semicolon or tab."""
        with UncompressedFile(path) as file:
            sample = np.frombuffer(file.read(_PEEKED_BYTES).removeprefix(codecs.BOM_UTF8), np.uint8)
        is_end = len(sample) < _PEEKED_BYTES - len(codecs.BOM_UTF8)
        delimiter = find_delimiter(sample, has_header=True, longest=LONGEST_RECORD, is_end=is_end)
        return cls(delimiter, True)._for_header(path, config.text_column)

    @classmethod
    def for_tsv(cls, path: str, config: CorpusSection) -> DelimitedReader:
        """A reader of tab-separated values."""
        return cls("\t", False)._for_header(path, config.text_column)

    def _for_header(self, path: str, text_column: str) -> DelimitedReader:
        """With the place of the text column.

        Raises:
            InputError: there is no header.
            UsageError: the header does not name the text column once.
        """
        names = self._header(path)
        if names.count(text_column) == 1:
            return dataclasses.replace(
                self, column=names.index(text_column), num_columns=len(names)
            )
        if text_column in names:
            raise UsageError(
                f"{path}: {names.count(text_column)} columns are named {text_column!r}; "
                "give them different names"
            )
        raise UsageError(
            f"{path}: no column {text_column!r}; columns found: {', '.join(names)} "
            "(choose one with --text-column)"
        )

    def _header(self, path: str) -> list[str]:
        with UncompressedFile(path) as file:
            chunks = cut_chunks(
                file,
                path,
                chunk_bytes=_PEEKED_BYTES,
                largest_document=self.largest_document,
                find_last_border=self.find_last_border,
                count_lines=self.count_lines,
            )
            data = next((chunk.data for chunk in chunks if chunk.data.strip()), b"")
        records = self._records(data, 1)
        if not len(records.faults) or records.faults[0] != SOUND:
            raise InputError(f"{path}: no header; the first line has to name the columns")
        names = first_cells(np.frombuffer(data, np.uint8), records)
        if has_surrogates("".join(names)):
            raise UsageError(f"{path}: the header is not UTF-8; convert the file")
        return names

    def find_last_border(self, data: bytes) -> int:
        """Offset of the last beginning of a record in `data`, 0 if there is none."""
        if not self.has_quotes:
            return data.rfind(b"\n") + 1
        records = self._records(data, 1)
        if not len(records.starts):
            return 0
        # The last record may continue after `data`, and a quote not closed yet may still be.
        unsure = np.flatnonzero(records.faults == OPEN_AT_END)
        return int(records.starts[unsure[0] if len(unsure) else -1])

    def count_lines(self, data: bytes, stop: int) -> int:
        """Line ends before a place: in CSV also a CR alone is one."""
        if not self.has_quotes:
            return data.count(b"\n", 0, stop)
        return count_line_ends(np.frombuffer(data, np.uint8, stop))

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        """Reads whole records; the first of the file is the header."""
        records = self._records(chunk.data, chunk.first_line)
        is_row = np.ones(len(records.lines), np.bool_)
        if chunk.index == 0:
            is_row[:1] = False
        counts = np.diff(records.offsets)
        is_sound = is_row & (records.faults == SOUND) & (counts == self.num_columns)
        fields = records.offsets[:-1][is_sound] + self.column
        data = np.frombuffer(chunk.data, np.uint8)
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
                self._reject(path, records, record, int(counts[record]))
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
        )

    def _reject(self, path: str, records: Records, record: int, count: int) -> Reject:
        line, fault = int(records.lines[record]), int(records.faults[record])
        if fault != SOUND:
            return Reject(path, line, FAULT_REASONS[fault])
        return Reject(path, line, *wrong_cells(count, self.num_columns))
