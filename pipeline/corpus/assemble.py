"""From lines or whole texts, as a format's reader found them, to a block of documents."""

from __future__ import annotations

import dataclasses
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from pipeline.corpus.block import DocumentBlock
from pipeline.corpus.cleaning import CleanLines, clean_lines, compose
from pipeline.corpus.paragraphs import paragraph_bounds
from pipeline.corpus.sentences import split_sentences

INVALID_UTF8 = "invalid UTF-8"
EMPTY_DOCUMENT = "empty document"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Texts:
    """Stretches of a file: lines, or the texts of rows.

    Attributes:
        data: uint8, the bytes they lie in.
        starts: int64 [texts].
        stops: int64 [texts].
        lines: int64 [texts], the line of the file where each begins, from 1.
    """

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    lines: np.ndarray


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


def block_of_sentence_lines(path: str, index: int, lines: Texts) -> DocumentBlock:
    """Makes a block of text with a sentence a line and blank lines between documents."""
    clean = clean_lines(lines.data, lines.starts, lines.stops)
    has_text = clean.lengths > 0
    is_blank = ~has_text & (clean.fault_positions < 0)
    documents = np.cumsum(is_blank)[has_text]
    sentences = gather(clean.data, clean.offsets[:-1][has_text], clean.offsets[1:][has_text] - 1)
    return DocumentBlock(
        source=path,
        index=index,
        sentences=compose(sentences) if clean.may_need_composition else sentences,
        document_offsets=_offsets_of_runs(documents),
        rejects=_utf8_rejects(path, lines, clean, rejected=np.flatnonzero(~has_text & ~is_blank)),
        dropped={},
    )


def block_of_one_document(path: str, index: int, lines: Texts) -> DocumentBlock:
    """Makes a block of a file that is one document; lines that are not UTF-8 are left out."""
    clean = clean_lines(lines.data, lines.starts, lines.stops)
    return _block(
        path,
        index,
        clean,
        line_documents=np.zeros(len(lines.starts), np.int64),
        num_documents=1,
        rejects=_utf8_rejects(path, lines, clean, np.flatnonzero(clean.fault_positions >= 0)),
        dropped={},
    )


def block_of_texts(
    path: str,
    index: int,
    texts: Texts,
    *,
    rejects: list[dict[str, Any]],
    dropped: dict[str, int],
) -> DocumentBlock:
    """Makes a block of documents that are a text each; one that is not UTF-8 is rejected whole.

    Args:
        path: the file.
        index: number of the block in it.
        texts: the documents.
        rejects: what the reader has rejected already.
        dropped: what the reader has dropped already.
    """
    starts, stops, text_of_line = split_lines(texts.data, texts.starts, texts.stops)
    clean = clean_lines(texts.data, starts, stops)
    faulty_lines = np.flatnonzero(clean.fault_positions >= 0)
    faulty, first_faults = np.unique(text_of_line[faulty_lines], return_index=True)
    positions = np.full(len(texts.starts), -1, np.int64)
    lines_with_fault = faulty_lines[first_faults]
    positions[faulty] = (
        clean.fault_positions[lines_with_fault] + starts[lines_with_fault] - texts.starts[faulty]
    )
    if len(faulty):
        kept = positions[text_of_line] < 0
        clean = clean_lines(texts.data, starts[kept], stops[kept])
        text_of_line = text_of_line[kept]
    found = [_utf8_reject(path, int(texts.lines[t]), int(positions[t])) for t in faulty]
    return _block(
        path,
        index,
        clean,
        line_documents=text_of_line,
        num_documents=len(texts.starts) - len(faulty),
        rejects=sorted(rejects + found, key=lambda reject: reject["line"]),
        dropped=dropped,
    )


def gather(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> pa.Array:
    """Copies stretches of UTF-8 into an Arrow string array."""
    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(stops - starts, out=offsets[1:])
    gathered = np.empty(offsets[-1], np.uint8)
    _copy(data, starts, stops, gathered)
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(gathered))


@numba.njit(cache=True, nogil=True)
def _copy(data, starts, stops, gathered):
    written = 0
    for stretch in range(len(starts)):
        for position in range(starts[stretch], stops[stretch]):
            gathered[written] = data[position]
            written += 1


def split_lines(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Splits texts at line ends: LF, CR, CRLF, VT, FF, and Unicode's line and paragraph separators.

    Returns:
        Starts and stops of the lines and the text of each, int64 [lines] each; a text has at least
        one line.
    """
    room = len(starts) + int(_count_line_ends(data, starts, stops))
    line_starts = np.empty(room, np.int64)
    line_stops = np.empty(room, np.int64)
    text_of_line = np.empty(room, np.int64)
    found = _split_lines(data, starts, stops, line_starts, line_stops, text_of_line)
    return line_starts[:found], line_stops[:found], text_of_line[:found]


@numba.njit(cache=True, nogil=True)
def _count_line_ends(data, starts, stops):
    count = 0
    for text in range(len(starts)):
        for position in range(starts[text], stops[text]):
            byte = data[position]
            count += 10 <= byte <= 13 or byte == 0xC2 or byte == 0xE2
    return count


@numba.njit(cache=True, nogil=True)
def _split_lines(data, starts, stops, line_starts, line_stops, text_of_line):
    found = 0
    for text in range(len(starts)):
        begin = position = starts[text]
        stop = stops[text]
        while position < stop:
            width = _line_end_width(data, position, stop)
            if width:
                line_starts[found], line_stops[found] = begin, position
                text_of_line[found] = text
                found += 1
                begin = position + width
            position += max(width, 1)
        line_starts[found], line_stops[found] = begin, stop
        text_of_line[found] = text
        found += 1
    return found


@numba.njit(cache=True, inline="always")
def _line_end_width(data, position, stop):
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


def _block(
    path: str,
    index: int,
    clean: CleanLines,
    *,
    line_documents: np.ndarray,
    num_documents: int,
    rejects: list[dict[str, Any]],
    dropped: dict[str, int],
) -> DocumentBlock:
    starts, stops, documents = paragraph_bounds(clean.data, clean.offsets, line_documents)
    starts, stops, counts = split_sentences(clean.data, starts, stops)
    document_offsets = _offsets_of_runs(np.repeat(documents, counts))
    empty = num_documents - (len(document_offsets) - 1)
    sentences = gather(clean.data, starts, stops)
    return DocumentBlock(
        source=path,
        index=index,
        sentences=compose(sentences) if clean.may_need_composition else sentences,
        document_offsets=document_offsets,
        rejects=rejects,
        dropped={**dropped, EMPTY_DOCUMENT: empty} if empty else dropped,
    )


def _offsets_of_runs(documents: np.ndarray) -> np.ndarray:
    """int64 [runs + 1]: where each run of equal numbers begins, and the end."""
    if not len(documents):
        return np.zeros(1, np.int64)
    changes = np.flatnonzero(np.diff(documents)) + 1
    return np.concatenate([np.zeros(1, np.int64), changes, np.full(1, len(documents))])


def _utf8_rejects(
    path: str, lines: Texts, clean: CleanLines, rejected: np.ndarray
) -> list[dict[str, Any]]:
    return [
        _utf8_reject(path, int(lines.lines[line]), int(clean.fault_positions[line]))
        for line in rejected
    ]


def _utf8_reject(path: str, line: int, position: int) -> dict[str, Any]:
    return {
        "source": path,
        "line": line,
        "reason": INVALID_UTF8,
        "detail": f"at byte {position + 1}",
    }
