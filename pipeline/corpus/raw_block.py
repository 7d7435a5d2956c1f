"""Ranges of text as a format's reader returns them, their lines, and their copies in Arrow."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
from bert_tf.base.errors import InputError
from bert_tf.base.kernels import take_ranges
from bert_tf.data.tables.dialect import INVALID_UTF8
from pipeline.corpus.evidence import Evidence

# Kinds of the texts of a `RawBlock`: sentences or paragraphs with blank lines between documents,
# lines of one document, or a document each.
SENTENCE_LINES = "sentence lines"
PARAGRAPH_LINES = "paragraph lines"
ONE_DOCUMENT = "one document"
DOCUMENTS = "documents"
_MOST_BYTES = np.iinfo(np.int32).max


@dataclasses.dataclass(frozen=True, kw_only=True)
class Texts:
    """Ranges of a file: lines, or the texts of rows."""

    data: np.ndarray  # uint8, the bytes they lie in
    starts: np.ndarray  # int64 [texts]
    stops: np.ndarray  # int64 [texts]
    # int64 [texts], the line of the file (Parquet: the row) where each begins, from 1.
    lines: np.ndarray

    @classmethod
    def of_rows(cls, texts: list[bytes], lines: list[int]) -> Texts:
        bounds = offsets_of(np.array([len(text) for text in texts], np.int64))
        return cls(
            data=np.frombuffer(b"".join(texts), np.uint8),
            starts=bounds[:-1],
            stops=bounds[1:],
            lines=np.array(lines, np.int64),
        )


def lines_of(data: bytes, first_line: int) -> Texts:
    """Cut text only at line feeds; a CR before one is white space."""
    characters = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(characters == ord("\n"))
    starts = np.concatenate([np.zeros(1, np.int64), feeds + 1])
    stops = np.concatenate([feeds, np.full(1, len(characters))])
    if starts[-1] == stops[-1]:  # the last line feed ends a line, it does not begin one
        starts = starts[:-1]
        stops = stops[:-1]
    return Texts(
        data=characters,
        starts=starts,
        stops=stops,
        lines=np.arange(first_line, first_line + len(starts)),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RawBlock:
    """Whole documents of one file as its reader found them, not cleaned."""

    source: str  # path of the file
    index: int  # number of the block in its file, ascending
    texts: Texts  # any bytes
    layout: str = DOCUMENTS  # SENTENCE_LINES, PARAGRAPH_LINES, ONE_DOCUMENT or DOCUMENTS
    evidence: Evidence = dataclasses.field(default_factory=Evidence)
    # The reason to reject texts that are not UTF-8; it names the encoding.
    invalid_text: str = INVALID_UTF8
    size: float = 0.0  # bytes that were read for it, counted like `Reader.whole_size`

    def renamed(self, source: str) -> RawBlock:
        if source == self.source:
            return self
        of_path = self.evidence.rejects
        rejects = [dataclasses.replace(reject, source=source) for reject in of_path]
        evidence = dataclasses.replace(self.evidence, rejects=rejects)
        return dataclasses.replace(self, source=source, evidence=evidence)


def gather(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> pa.Array:
    """Copy ranges of UTF-8 into an Arrow string array; raise InputError from 2 GiB on."""
    wide_offsets = offsets_of(stops - starts)
    if wide_offsets[-1] > _MOST_BYTES:
        raise InputError(
            f"a block has {wide_offsets[-1]:,} bytes of text, at most {_MOST_BYTES:,} fit; lower "
            "block_megabytes, or cut documents of such a size"
        )
    offsets = wide_offsets.astype(np.int32)
    gathered = take_ranges(data, starts, stops - starts)
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(gathered))


@numba.njit(cache=True, nogil=True)
def _count_line_ends(data, starts, stops):
    """Return the number of line ends of texts at most: that of bytes which may begin one."""
    count = 0
    for text in range(len(starts)):
        for position in range(starts[text], stops[text]):
            byte = data[position]
            count += 10 <= byte <= 13 or byte == 0xC2 or byte == 0xE2
    return count


@numba.njit(cache=True, nogil=True)
def split_lines(data, starts, stops):
    """Split texts at line ends: LF, CR, CRLF, VT, FF, and Unicode's line and paragraph separators.

    Args:
        data: uint8, any bytes.
        starts, stops: int64 [texts], bytes of each.

    Returns:
        Starts, stops and the text of each line, int64 [lines] each; every text has a line.
    """
    line_starts = np.empty(len(starts) + _count_line_ends(data, starts, stops), np.int64)
    line_stops = np.empty_like(line_starts)
    text_of_line = np.empty_like(line_starts)
    num_lines = 0
    for text in range(len(starts)):
        begin = starts[text]
        position = begin
        stop = stops[text]
        while position < stop:
            width = _line_end_width(data, position, stop)
            if width:
                line_starts[num_lines] = begin
                line_stops[num_lines] = position
                text_of_line[num_lines] = text
                num_lines += 1
                begin = position + width
            position += max(width, 1)
        line_starts[num_lines] = begin
        line_stops[num_lines] = stop
        text_of_line[num_lines] = text
        num_lines += 1
    return line_starts[:num_lines], line_stops[:num_lines], text_of_line[:num_lines]


@numba.njit(cache=True, inline="always")
def _line_end_width(data, position, stop):
    """Return the bytes of the line end at a position, 0 without one."""
    byte = data[position]
    if byte == 13 and position + 1 < stop and data[position + 1] == 10:
        return 2
    if 10 <= byte <= 13:
        return 1
    if byte == 0xC2 and position + 1 < stop and data[position + 1] == 0x85:
        return 2
    if byte == 0xE2 and position + 2 < stop and data[position + 1] == 0x80:
        return 3 if data[position + 2] == 0xA8 or data[position + 2] == 0xA9 else 0
    return 0
