"""JSON Lines: an object per line, one of its keys holding a document."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.cells import cell_fault, check_columns
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.delimited import too_long
from bert_tf.data.tables.formats.json_lines import (
    JSON_BLANKS,
    KEYS_ARE_NAMES,
    RowError,
    check_first_line,
    parse_object,
)
from bert_tf.data.tables.rejects import Reject
from pipeline.beam.files import UncompressedFile
from pipeline.corpus.evidence import TALLIED
from pipeline.corpus.raw_block import RawBlock
from pipeline.corpus.readers.splits import Chunk, ChunkReader, DocumentOutcome, collect
from pipeline.corpus.readers.wikiextractor import wiki_text

_PEEKED_BYTES = 1 << 22  # of a file, in which its keys are checked


@dataclasses.dataclass(frozen=True)
class JsonlReader(ChunkReader):
    """Reads chunks of a JSON Lines file; `key` holds the text."""

    key: str

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> JsonlReader:
        """Check the first megabytes; InputError for one large value, UsageError without `key`."""
        dialect = TableDialect.of(config)
        dialect.check_has_names(path, KEYS_ARE_NAMES)
        with UncompressedFile(path, dialect.encoding) as file:
            head = file.read(_PEEKED_BYTES)
        first_line = head.lstrip(JSON_BLANKS.encode()).partition(b"\n")[0]
        check_first_line(path, first_line.decode("utf-8", "replace").strip(JSON_BLANKS))
        keys: dict[str, None] = {}
        for line in head.split(b"\n"):
            try:
                row = _parse(line, dialect)
            except RowError:
                continue
            if config.text_column in row:
                return cls(config.text_column)
            keys.update(dict.fromkeys(row))
        if keys:
            check_columns(path, None, tuple(keys), [config.text_column])
        return cls(config.text_column)

    def find_last_border(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        cells: dict[str, list[str]] = {column: [] for column in TALLIED}
        return collect(path, chunk, self._documents(path, chunk, cells), cells)

    def _documents(
        self, path: str, chunk: Chunk, cells: Mapping[str, list[str]]
    ) -> Iterator[DocumentOutcome]:
        lines = chunk.data.removesuffix(b"\n").split(b"\n")
        longest = self.dialect.max_row_characters  # JSON may take many times its size
        for number, line in enumerate(lines, chunk.first_line):
            # A line has at least as many bytes as characters, so these are counted in few lines.
            if len(line) > longest and len(line.decode("utf-8", "surrogateescape")) > longest:
                yield too_long(path, number, self.dialect)
                continue
            if not line.strip(JSON_BLANKS.encode()):
                yield "blank line"
                continue
            try:
                row = _parse(line, self.dialect)
                yield number, self._text(row)
            except RowError as error:
                yield Reject(path, number, error.reason, error.detail)
                continue
            for column, values in cells.items():
                cell = row.get(column)
                if isinstance(cell, str):
                    values.append(cell)

    def _text(self, row: dict[str, Any]) -> bytes:
        text = row.get(self.key)
        if not isinstance(text, str):
            fault = cell_fault(row, self.key, kind="text", allow_empty=False)
            assert fault is not None  # of a value that is not a string
            raise RowError(*fault)
        return wiki_text(row, text).encode("utf-8")


def _parse(line: bytes, dialect: TableDialect) -> dict[str, Any]:
    try:
        raw = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RowError(dialect.invalid_text, f"at byte {error.start + 1}") from None
    return parse_object(raw)
