"""What a format's reader returns: ranges of text, and their layout."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.data.tables.reasons import INVALID_UTF8
from bert_tf.data.tables.rejects import Reject

# What the texts of a `RawBlock` are: sentences or paragraphs with blank lines between documents,
# lines of one document, or a document each.
SENTENCE_LINES, PARAGRAPH_LINES = "sentence lines", "paragraph lines"
ONE_DOCUMENT, DOCUMENTS = "one document", "documents"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Texts:
    """Ranges of a file: lines, or the texts of rows.

    Attributes:
        data: uint8, the bytes they lie in.
        starts: int64 [texts].
        stops: int64 [texts].
        lines: int64 [texts], the line of the file (Parquet: the row) where each begins, from 1.
    """

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    lines: np.ndarray

    @classmethod
    def of_rows(cls, texts: list[bytes], lines: list[int]) -> Texts:
        """The texts of rows that had to be parsed, with the line where each begins."""
        bounds = offsets_of(np.array([len(text) for text in texts], np.int64))
        return cls(
            data=np.frombuffer(b"".join(texts), np.uint8),
            starts=bounds[:-1],
            stops=bounds[1:],
            lines=np.array(lines, np.int64),
        )


def lines_of(data: bytes, first_line: int) -> Texts:
    """The lines of some text, cut at line feeds only (a CR before one is white space)."""
    characters = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(characters == ord("\n"))
    starts = np.concatenate([np.zeros(1, np.int64), feeds + 1])
    stops = np.concatenate([feeds, np.full(1, len(characters))])
    if starts[-1] == stops[-1]:  # the last line feed ends a line, it does not begin one
        starts, stops = starts[:-1], stops[:-1]
    return Texts(
        data=characters,
        starts=starts,
        stops=stops,
        lines=np.arange(first_line, first_line + len(starts)),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RawBlock:
    """Whole documents of one file as its reader found them, not cleaned.

    Attributes:
        source: path of the file.
        index: number of the block in its file, ascending.
        texts: any bytes.
        layout: SENTENCE_LINES, PARAGRAPH_LINES, ONE_DOCUMENT or DOCUMENTS.
        rejects: what the reader has rejected already (see `DocumentBlock`).
        dropped: what the reader has dropped already.
        invalid_text: the reason to reject texts that are not UTF-8; it names the encoding.
        size: of what was read for it, in the unit of `Reader.whole_size`.
    """

    source: str
    index: int
    texts: Texts
    layout: str
    rejects: list[Reject] = dataclasses.field(default_factory=list)
    dropped: dict[str, int] = dataclasses.field(default_factory=dict)
    invalid_text: str = INVALID_UTF8
    size: float = 0.0

    def renamed(self, source: str) -> RawBlock:
        """The block as one of a file of another name."""
        if source == self.source:
            return self
        rejects = [dataclasses.replace(reject, source=source) for reject in self.rejects]
        return dataclasses.replace(self, source=source, rejects=rejects)


def block_of_lines(path: str, index: int, lines: Texts, layout: str) -> RawBlock:
    """A block of text with a sentence or paragraph per line and blank lines between documents."""
    return RawBlock(source=path, index=index, texts=lines, layout=layout)


def block_of_one_document(path: str, index: int, lines: Texts) -> RawBlock:
    """A block of a file that is one document; lines that are not UTF-8 will be left out."""
    return RawBlock(source=path, index=index, texts=lines, layout=ONE_DOCUMENT)


def block_of_texts(
    path: str,
    index: int,
    texts: Texts,
    *,
    rejects: list[Reject],
    dropped: dict[str, int],
) -> RawBlock:
    """A block of documents that are one text each; one that is not UTF-8 will be rejected whole.

    Args:
        path: the file.
        index: number of the block in it.
        texts: the documents.
        rejects: what the reader has rejected already.
        dropped: what the reader has dropped already.
    """
    return RawBlock(
        source=path,
        index=index,
        texts=texts,
        layout=DOCUMENTS,
        rejects=rejects,
        dropped=dropped,
    )
