"""JSON Lines: an object a line, one of its keys holding a document."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.files import UncompressedFile
from pipeline.corpus.blocks.raw_block import (
    INVALID_UTF8,
    NOT_A_STRING,
    RawBlock,
    Texts,
    block_of_texts,
)
from pipeline.corpus.readers.chunks import Piece
from pipeline.corpus.readers.csv_records import LONGEST_RECORD_BYTES
from pipeline.corpus.readers.splits import PieceReader

_PEEKED_BYTES = 1 << 22


class _RowError(Exception):
    """A line that holds no text; the arguments are the reason and the detail."""


@dataclasses.dataclass(frozen=True)
class JsonlReader(PieceReader):
    """Reads pieces of a JSON Lines file; `key` holds the text."""

    key: str

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> JsonlReader:
        """The reader the configuration asks for.

        Raises:
            UsageError: none of the objects in the file's first megabytes has the key.
        """
        with UncompressedFile(path) as file:
            head = file.read(_PEEKED_BYTES)
        keys: dict[str, None] = {}
        for line in head.split(b"\n"):
            try:
                row = _parse(line)
            except _RowError:
                continue
            if config.text_column in row:
                return cls(config.text_column)
            keys.update(dict.fromkeys(row))
        if keys:
            raise UsageError(
                f"{path}: no object has the key {config.text_column!r}; keys found: "
                f"{', '.join(keys)} (choose one with --text-column)"
            )
        return cls(config.text_column)

    def find_last_border(self, data: bytes) -> int:
        """Offset of the last beginning of a line in `data`, 0 if there is none."""
        return data.rfind(b"\n") + 1

    def read(self, path: str, piece: Piece) -> RawBlock:
        """Reads whole lines."""
        texts: list[bytes] = []
        lines: list[int] = []
        rejects: list[dict[str, Any]] = []
        blank = 0
        for number, line in enumerate(piece.data.split(b"\n"), piece.first_line):
            if not line or line.isspace():
                blank += 1
                continue
            try:
                if len(line) > LONGEST_RECORD_BYTES:  # JSON may take many times its size
                    raise _RowError("line is too long", f"more than {LONGEST_RECORD_BYTES:,} bytes")
                texts.append(self._text(_parse(line)))
                lines.append(number)
            except _RowError as error:
                reason, detail = error.args
                rejects.append({"source": path, "line": number, "reason": reason, "detail": detail})
        if piece.data.endswith(b"\n"):
            blank -= 1  # the piece behind the last line feed is no line
        return block_of_texts(
            path,
            piece.index,
            Texts.of_rows(texts, lines),
            rejects=rejects,
            dropped={"blank line": blank} if blank else {},
        )

    def _text(self, row: dict[str, Any]) -> bytes:
        if self.key not in row:
            raise _RowError("missing key", f"the object has no {self.key!r}")
        text = row[self.key]
        if not isinstance(text, str):
            kind = "null" if text is None else type(text).__name__
            raise _RowError(NOT_A_STRING, f"{self.key!r} holds {kind}")
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise _RowError(
                "lone surrogate", f"{self.key!r} at character {error.start + 1}"
            ) from None


def _parse(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _RowError(INVALID_UTF8, f"at byte {error.start + 1}") from None
    except (ValueError, RecursionError) as error:
        raise _RowError("broken JSON", str(error)) from None
    if not isinstance(row, dict):
        raise _RowError("not a JSON object", f"found {type(row).__name__}")
    return row
