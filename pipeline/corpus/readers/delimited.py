"""CSV (RFC 4180, quoted cells may hold line ends) and TSV (rarely quoted): a document per row."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.cells import check_columns
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.csv_records import (
    RecordFault,
    Records,
    count_line_ends,
    field_bytes,
    find_records,
)
from bert_tf.data.tables.formats.delimited import are_utf8, find_rows, row_reject
from bert_tf.data.tables.formats.delimited_header import (
    TableHeader,
    is_quoted_later,
    read_table_header,
)
from bert_tf.data.tables.rejects import HEADER_REPEATED, Reject
from pipeline.beam.storage import open_stored
from pipeline.corpus.evidence import Evidence, tallied_columns, tally_columns
from pipeline.corpus.raw_block import RawBlock, Texts, gather
from pipeline.corpus.readers.splits import Chunk, ChunkReader


@dataclasses.dataclass(frozen=True)
class DelimitedReader(ChunkReader):
    """Reads chunks of a CSV or TSV file, whose first record names the columns or is a row."""

    header: TableHeader  # the names of the columns, delimiter and quotes
    column: int  # place of the text column, from 0
    tallied: tuple[str, ...] = ()  # further columns, for `tally_columns`

    @classmethod
    def for_file(cls, path: str, config: CorpusSection, *, has_quotes: bool) -> DelimitedReader:
        """Find the text column; InputError for a bad header, UsageError without the column."""
        dialect = TableDialect.of(config)
        header = read_table_header(path, dialect, has_quotes=has_quotes, opener=open_stored)
        check_columns(path, header, header.columns, [config.text_column])
        tallied = tallied_columns(header.columns, config)
        return cls(header, header.columns.index(config.text_column), tallied)

    def resolved(self, path: str, *, is_sample: bool = False) -> DelimitedReader:
        """Decide whether cells are quoted; the first cells of a TSV file need not show it."""
        if is_sample or self.header.has_quotes:
            return self
        has_quotes = is_quoted_later(path, self.dialect, opener=open_stored)
        header = dataclasses.replace(self.header, has_quotes=has_quotes)
        return dataclasses.replace(self, header=header)

    def find_last_border(self, data: bytes) -> int:
        if not self.header.has_quotes:
            border = data.rfind(b"\n") + 1
            return border if data[:border].strip(b" \r\n") else 0
        records = self._records(data, 1)
        if not len(records.starts):
            return 0
        # The last record may continue after `data`, and an open quote may be closed there.
        unsure = np.flatnonzero(records.faults == RecordFault.OPEN_AT_END)
        last = int(unsure[0]) if len(unsure) else len(records.starts) - 1
        return int(records.starts[last]) if last else 0

    def count_lines(self, data: bytes, stop: int) -> int:
        """Count line ends; in CSV a CR without LF is one, too."""
        if not self.header.has_quotes:
            return data.count(b"\n", 0, stop)
        return count_line_ends(np.frombuffer(data, np.uint8, stop))

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        records = self._records(chunk.data, chunk.first_line)
        data = np.frombuffer(chunk.data, np.uint8)
        is_sound, is_blank = find_rows(records, self.header)
        is_row = ~is_blank & (records.lines > self.header.line)
        repeats = is_row & _are_equal(self.header.raw, data, records)
        is_sound &= is_row & ~repeats
        is_sound[is_sound] = are_utf8(data, records.starts[is_sound], records.stops[is_sound])
        blank_lines = records.blank_lines + int(is_blank.sum())
        first_fields = records.offsets[:-1][is_sound]
        copied, offsets = field_bytes(data, records, first_fields + self.column)
        tallied = {}
        for name in self.tallied:
            place = self.header.columns.index(name)
            cells, ends = field_bytes(data, records, first_fields + place)
            tallied[name] = gather(cells, ends[:-1], ends[1:])
        rejects = []
        for record in np.flatnonzero(is_row & ~is_sound).tolist():
            if repeats[record]:
                rejects.append(Reject(path, int(records.lines[record]), HEADER_REPEATED))
                continue
            raw = data[records.starts[record] : records.stops[record]].tobytes()
            rejects.append(row_reject(path, raw, records, record, self.header, self.dialect))
        return RawBlock(
            source=path,
            index=chunk.index,
            texts=Texts(
                data=copied, starts=offsets[:-1], stops=offsets[1:], lines=records.lines[is_sound]
            ),
            evidence=Evidence(
                rejects=rejects,
                dropped={"blank line": blank_lines},
                tallies=tally_columns(tallied),
            ),
        )

    def _records(self, data: bytes, first_line: int) -> Records:
        return find_records(
            np.frombuffer(data, np.uint8),
            delimiter=ord(self.header.delimiter),
            has_quotes=self.header.has_quotes,
            first_line=first_line,
            longest=self.dialect.max_row_characters,
        )


def _are_equal(text: str | None, data: np.ndarray, records: Records) -> np.ndarray:
    """Return whether records equal a text, bool [records]; none equals None."""
    are_equal = np.zeros(len(records.starts), np.bool_)
    if text is not None:
        wanted = text.encode()
        for record in np.flatnonzero(records.stops - records.starts == len(wanted)).tolist():
            raw = data[records.starts[record] : records.stops[record]]
            are_equal[record] = raw.tobytes() == wanted
    return are_equal
