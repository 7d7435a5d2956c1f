"""JSON Lines: an object per line, one of its keys holding a document."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa

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
from pipeline.corpus.evidence import TALLIED, tally_columns
from pipeline.corpus.raw_block import RawBlock, Texts
from pipeline.corpus.readers.splits import Chunk, ChunkReader
from pipeline.corpus.readers.wikiextractor import wiki_text

_PEEKED_BYTES = 1 << 22


@dataclasses.dataclass(frozen=True)
class JsonlReader(ChunkReader):
    """Reads chunks of a JSON Lines file; `key` holds the text."""

    key: str

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> JsonlReader:
        """Checks the first megabytes; InputError for one large value, UsageError without `key`."""
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
        texts: list[bytes] = []
        lines: list[int] = []
        cells: dict[str, list[str]] = {column: [] for column in TALLIED}
        rejects: list[Reject] = []
        blank = 0
        for number, line in enumerate(chunk.data.split(b"\n"), chunk.first_line):
            if _is_longer(line, self.dialect.max_row_characters):
                rejects.append(too_long(path, number, self.dialect))
                continue
            if not line.strip(JSON_BLANKS.encode()):
                blank += 1
                continue
            try:
                row = _parse(line, self.dialect)
                texts.append(self._text(row))
                lines.append(number)
                for column, found in cells.items():
                    if isinstance(cell := row.get(column), str):
                        found.append(cell)
            except RowError as error:
                rejects.append(Reject(path, number, error.reason, error.detail))
        if chunk.data.endswith(b"\n"):
            blank -= 1  # nothing follows the last line feed
        return RawBlock(
            source=path,
            index=chunk.index,
            texts=Texts.of_rows(texts, lines),
            rejects=rejects,
            dropped={"blank line": blank} if blank else {},
            tallies=tally_columns(
                {column: pa.array(found, pa.string()) for column, found in cells.items()}
            ),
        )

    def _text(self, row: dict[str, Any]) -> bytes:
        text = row.get(self.key)
        if not isinstance(text, str):
            fault = cell_fault(row, self.key, kind="text", allow_empty=False)
            assert fault is not None  # of a value that is not a string
            raise RowError(*fault)
        return wiki_text(row, text).encode("utf-8")


def _is_longer(line: bytes, longest: int) -> bool:
    """Whether a line has more characters than allowed: JSON may take many times its size."""
    if len(line) <= longest:
        return False
    return len(line) > 4 * longest or len(line.decode("utf-8", "surrogateescape")) > longest


def _parse(line: bytes, dialect: TableDialect) -> dict[str, Any]:
    try:
        raw = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RowError(dialect.invalid_text, f"at byte {error.start + 1}") from None
    return parse_object(raw)
