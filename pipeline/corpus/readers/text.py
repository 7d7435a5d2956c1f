"""Plain text: sentence lines with blank lines between documents, a document a line or a file."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.files import UncompressedFile
from pipeline.corpus.blocks.raw_block import (
    RawBlock,
    Texts,
    block_of_one_document,
    block_of_sentence_lines,
    block_of_texts,
    lines_of,
)
from pipeline.corpus.cleaning.lines import find_blank_lines
from pipeline.corpus.readers.chunks import Chunk
from pipeline.corpus.readers.splits import ChunkReader

_BLANK_LINE = re.compile(rb"\n[ \t\r\f\v]*\n")
# It begins after a character, so that a run of white space is looked at once.
_BLANK_LINE_INSIDE = re.compile(rb"(?<=\S)[ \t\r\f\v]*+\n[ \t\r\f\v]*+\n\s*+\S")
_DETECTION_BYTES = 1 << 20
_BORDER_WINDOW = 1 << 16  # bytes at the end of a chunk where a border is looked for first


@dataclasses.dataclass(frozen=True)
class TextReader(ChunkReader):
    """Reads chunks of a plain text file of one layout (see `CorpusSection.text_layout`)."""

    layout: str

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> TextReader:
        """The reader the configuration asks for."""
        del path
        return cls(config.text_layout)

    def resolved(self, path: str) -> TextReader:
        """With the layout `auto` replaced by what the file looks like."""
        if self.layout != "auto":
            return self
        return dataclasses.replace(self, layout=detect_layout(path, self.dialect.encoding))

    def find_last_border(self, data: bytes) -> int:
        """Offset of the last beginning of a document in `data`, 0 if there is none."""
        if self.layout in ("file", "paragraphs"):
            return 0
        if self.layout == "lines":
            return data.rfind(b"\n") + 1
        window = _BORDER_WINDOW
        while True:
            begin = max(len(data) - window, 0)
            borders = [match.end() for match in _BLANK_LINE.finditer(data, begin)]
            if borders or begin == 0:
                return borders[-1] if borders else 0
            window *= 4

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        """Reads whole documents."""
        lines = lines_of(chunk.data, chunk.first_line)
        if self.layout == "sentences":
            return block_of_sentence_lines(path, chunk.index, lines)
        if self.layout == "file":
            return block_of_one_document(path, chunk.index, lines)
        if self.layout == "paragraphs":
            return block_of_one_document(path, chunk.index, join_paragraphs(lines))
        return block_of_texts(path, chunk.index, lines, rejects=[], dropped={})


def detect_layout(path: str, encoding: str) -> str:
    """`sentences` for a text with a blank line between its lines, else `file`."""
    with UncompressedFile(path, encoding) as file:
        kept = b""
        while chunk := file.read(_DETECTION_BYTES):
            kept = kept + chunk if kept else chunk.lstrip()
            if _BLANK_LINE_INSIDE.search(kept):
                return "sentences"
            text = kept.rstrip()
            line_ends = kept.count(b"\n", len(text))
            kept = text[-1:] + (b"\n" * min(line_ends, 2) or b" " * (len(kept) > len(text)))
    return "file"


def join_paragraphs(lines: Texts) -> Texts:
    """Makes one text of all lines between two blank ones; the blank lines stay, each a text."""
    is_blank = find_blank_lines(lines.data, lines.starts, lines.stops)
    with_ends = np.concatenate([np.ones(1, np.bool_), is_blank, np.ones(1, np.bool_)])
    is_first = is_blank | with_ends[:-2]
    is_last = is_blank | with_ends[2:]
    data = lines.data.copy()
    data[data == ord("\n")] = ord(" ")
    return Texts(
        data=data,
        starts=lines.starts[is_first],
        stops=lines.stops[is_last],
        lines=lines.lines[is_first],
    )
