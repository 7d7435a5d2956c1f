"""Plain text: a sentence a line with blank lines between documents, a document a line or a file."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.config.sections.data import CorpusSection
from pipeline.corpus.block import DocumentBlock
from pipeline.corpus.files import UncompressedFile
from pipeline.corpus.pieces import Piece

_BLANK_LINE = re.compile(rb"\n[ \t\r\f\v]*\n")
_BLANK_LINE_INSIDE = re.compile(rb"\n[ \t\r\f\v]*\n\s*\S")
_DETECTION_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class TextReader:
    """Reads pieces of a plain text file of one layout (see `CorpusSection.text_layout`)."""

    layout: str

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> TextReader:
        """The reader the configuration asks for."""
        del path
        return cls(config.text_layout)

    def resolved(self, path: str) -> TextReader:
        """With the layout `auto` replaced by what the file looks like."""
        return TextReader(detect_layout(path)) if self.layout == "auto" else self

    def find_last_border(self, data: bytes) -> int:
        """Offset of the last beginning of a document in `data`, 0 if there is none."""
        if self.layout == "file":
            return 0
        if self.layout == "lines":
            return data.rfind(b"\n") + 1
        border = 0
        for match in _BLANK_LINE.finditer(data):
            border = match.end()
        return border

    def read(self, path: str, piece: Piece) -> DocumentBlock:
        """Reads whole documents."""
        sentences: list[str] = []
        offsets = [0]
        rejects: list[dict[str, Any]] = []
        for number, line in enumerate(piece.data.split(b"\n"), piece.first_line):
            try:
                text = " ".join(line.decode("utf-8").split())
            except UnicodeDecodeError as error:
                rejects.append(
                    {
                        "source": path,
                        "line": number,
                        "reason": "invalid UTF-8",
                        "detail": f"byte {error.start + 1} of the line",
                    }
                )
                continue
            if text:
                sentences.append(text)
            at_border = self.layout == "lines" or (self.layout == "sentences" and not text)
            if at_border and len(sentences) > offsets[-1]:
                offsets.append(len(sentences))
        if len(sentences) > offsets[-1]:
            offsets.append(len(sentences))
        return DocumentBlock(
            source=path,
            index=piece.index,
            sentences=pa.array(sentences, pa.string()),
            document_offsets=np.array(offsets, np.int64),
            rejects=rejects,
            dropped={},
        )


def detect_layout(path: str) -> str:
    """`sentences` for a text with a blank line between its lines, else `file`."""
    with UncompressedFile(path) as file:
        kept = b""
        while chunk := file.read(_DETECTION_BYTES):
            kept = kept + chunk if kept else chunk.lstrip()
            if _BLANK_LINE_INSIDE.search(kept):
                return "sentences"
            kept = kept[max(len(kept.rstrip()) - 1, 0) :]
    return "file"
