"""Plain text in one of several layouts (`CorpusSection.text_layout`)."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.files import UncompressedFile
from pipeline.corpus.evidence import Evidence
from pipeline.corpus.layout.east_asian import remove_breaks
from pipeline.corpus.layout.line_ends import measure_lines
from pipeline.corpus.layout.paragraphs import find_structure
from pipeline.corpus.layout.sketch import (
    END_OF_TEXT,
    WIKI_BEGIN,
    Sketch,
    has_other_line_ends,
    sketch_text,
    with_line_feeds,
)
from pipeline.corpus.lines import clean_lines, find_rules
from pipeline.corpus.raw_block import (
    DOCUMENTS,
    ONE_DOCUMENT,
    PARAGRAPH_LINES,
    SENTENCE_LINES,
    RawBlock,
    Texts,
    lines_of,
)
from pipeline.corpus.readers.splits import BYTE_ORDER_MARK, Chunk, ChunkReader
from pipeline.corpus.readers.wikiextractor import read_wiki_documents

_BLANKS = (  # Unicode's white space except line feeds
    rb"(?:[ \t\r\f\v\x1c-\x1f]|\xc2[\x85\xa0]|\xe1\x9a\x80"
    rb"|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80)*+"
)
_RAW_LAYOUTS = {
    "sentences": SENTENCE_LINES,
    "paragraph_lines": PARAGRAPH_LINES,
    "file": ONE_DOCUMENT,
    "paragraphs": ONE_DOCUMENT,
}
_BORDERS = {
    "sentences": re.compile(rb"\n" + _BLANKS + rb"\n"),
    "articles": re.compile(rb"\n" + _BLANKS + rb"\n" + _BLANKS + rb"\n"),
    "endoftext": re.compile(re.escape(END_OF_TEXT)),
    "wikiextractor": re.compile(rb"\n(?=" + WIKI_BEGIN + rb")"),
}
_BORDERS["paragraph_lines"] = _BORDERS["sentences"]
_BORDER_WINDOW = 1 << 16  # bytes at the end of a chunk where a border is searched first
# It begins after a character, so that a run of white space is searched once.
_BLANK_LINE_INSIDE = re.compile(rb"(?<=\S)" + _BLANKS + rb"\n" + _BLANKS + rb"\n\s*+\S")
# Beginnings of lines that begin a paragraph: items, directives of reStructuredText, rows of tables
# in Markdown …
_ITEM = re.compile(
    rb"^[ \t]*(?:(?:[*+-]|\xe2\x80\xa2) |\.\.(?: |\r?$)|\| )",
    re.MULTILINE,
)
# … and, where the line before is one of these too or ends a sentence, numbers, keys, fields of
# reStructuredText and tags of Java.
_NUMBERED = re.compile(
    rb"^[ \t]*(?:\(?(?:\d{1,3}|[A-Za-z]|[ivx]{2,6}|[IVX]{2,6})[.)]"
    rb"|\d{1,3}(?:\.\d{1,3})+\.?|[A-Z][\w-]{1,24}:) "
    rb"|^[ \t]*(?:@[a-z]+ |:[\w` -]{1,40}:(?: |\r?$))",
    re.MULTILINE,
)
HEAD_BYTES = 1 << 21  # of a file, from which its layout is found
_LINE_END_BYTES = 1 << 20  # of a file of a known layout, in which its line ends are counted
_MOST_BYTES_WITHOUT_BLANK_LINE = 1 << 26  # of a file: further blank lines mean nothing


@dataclasses.dataclass(frozen=True)
class TextReader(ChunkReader):
    """Reads plain text in a layout, see `pipeline.corpus.layout`.

    Attributes:
        layout: see `CorpusSection.text_layout`; `auto` until `resolved`.
        has_other_line_ends: whether lines end with other characters than line feeds.
    """

    layout: str
    has_other_line_ends: bool = False

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> TextReader:
        del path
        return cls(config.text_layout)

    def resolved(self, path: str, *, is_sample: bool = False) -> TextReader:
        del is_sample  # stops at the first blank line
        if self.layout != "auto":
            with UncompressedFile(path, self.dialect.encoding) as file:
                head = file.read(_LINE_END_BYTES)
            return dataclasses.replace(self, has_other_line_ends=has_other_line_ends(head))
        head, sketch = self.look(path)
        return dataclasses.replace(
            self, layout=sketch.layout(1), has_other_line_ends=has_other_line_ends(head)
        )

    def look(self, path: str, head_bytes: int = HEAD_BYTES) -> tuple[bytes, Sketch]:
        """Return the beginning of a file, of at most `head_bytes`, and its sketch.

        If it has no blank line, more of the file is searched for one.
        """
        with UncompressedFile(path, self.dialect.encoding) as file:
            head = file.read(head_bytes)
            text = with_line_feeds(head) if has_other_line_ends(head) else head
            if len(head) < head_bytes:
                return head, sketch_text(text.removeprefix(BYTE_ORDER_MARK), 0)
            whole_lines = text[: text.rfind(b"\n") + 1] or text
            sketch = sketch_text(whole_lines.removeprefix(BYTE_ORDER_MARK), 0)
            if sketch.files and not sketch.has_gaps and _has_blank_line(file, text):
                sketch = dataclasses.replace(sketch, groups=2, single_groups=0, titled_files=0)
        return head, sketch

    def find_last_border(self, data: bytes) -> int:
        if self.layout in ("file", "paragraphs"):
            return 0
        if self.has_other_line_ends:
            data = with_line_feeds(data)
        if self.layout == "lines":
            return data.rfind(b"\n") + 1
        window = _BORDER_WINDOW
        while True:
            begin = max(len(data) - window, 0)
            borders = [match.end() for match in _BORDERS[self.layout].finditer(data, begin)]
            if borders or begin == 0:
                return borders[-1] if borders else 0
            window *= 4

    def count_lines(self, data: bytes, stop: int) -> int:
        data = with_line_feeds(data) if self.has_other_line_ends else data
        return super().count_lines(data, stop)

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        data = with_line_feeds(chunk.data) if self.has_other_line_ends else chunk.data
        lines = lines_of(data, chunk.first_line)
        evidence = Evidence()
        if self.layout == "paragraphs":
            lines, _ = join_paragraphs(lines)
        elif self.layout == "articles":
            lines = _join_articles(lines)
        elif self.layout == "endoftext":
            lines = _texts_between_marks(data, chunk.first_line)
        elif self.layout == "wikiextractor":
            lines, evidence = read_wiki_documents(data, chunk.first_line)
        layout = _RAW_LAYOUTS.get(self.layout, DOCUMENTS)
        return RawBlock(
            source=path, index=chunk.index, texts=lines, layout=layout, evidence=evidence
        )


def _has_blank_line(file: UncompressedFile, kept: bytes) -> bool:
    """Tell whether a blank line is between lines of a file, of which `kept` was read before."""
    size = len(kept)
    while size < _MOST_BYTES_WITHOUT_BLANK_LINE:
        chunk = file.read(HEAD_BYTES)
        if not chunk:
            break
        size += len(chunk)
        # Of the text before the chunk its last character is enough, and of the white space after
        # it two line ends or, without any, a blank.
        text = kept.rstrip()
        blanks = kept[len(text) :]
        line_ends = b"\n" * min(blanks.count(b"\n"), 2)
        kept = text[-1:] + (line_ends or blanks[:1]) + chunk
        if _BLANK_LINE_INSIDE.search(kept):
            return True
    return False


def join_paragraphs(lines: Texts) -> tuple[Texts, np.ndarray]:
    """Join lines up to items, headings, rows of tables, drawn lines and blank lines.

    Args:
        lines: raw lines.

    Returns:
        Texts, each of them lines joined by spaces (see `layout.east_asian` for scripts without
        any), and bool [texts], which of them are blank lines.
    """
    clean = clean_lines(lines.data, lines.starts, lines.stops, has_columns=True)
    starts = clean.offsets[:-1]
    stops = clean.offsets[1:] - 1
    is_blank = (clean.lengths == 0) & (clean.fault_positions < 0)
    is_border = is_blank | find_rules(clean.data, starts, stops)
    is_break = ~(is_border[:-1] | is_border[1:])
    ends = measure_lines(clean.data, starts, stops, is_break)
    begins, _ = find_structure(ends, clean.columns)
    begins[1:] &= clean.fault_positions[:-1] < 0  # a reject is a whole paragraph
    begins &= clean.fault_positions < 0
    is_after = np.append(False, is_break)[: len(is_border)]
    is_numbered = _begin_with(_NUMBERED, lines)
    may_begin = np.append(False, is_numbered[:-1] | ~ends.is_open[:-1])[: len(is_border)]
    begins |= (is_numbered & may_begin) | _begin_with(_ITEM, lines)
    is_first = ~is_after | begins
    is_last = np.append(is_first, True)[1:]
    data = lines.data.copy()
    data[data == ord("\n")] = ord(" ")
    # A paragraph that is no UTF-8 keeps its breaks: its reject names a byte of the file.
    paragraphs = np.cumsum(is_first) - 1
    is_faulty = np.bincount(paragraphs, clean.fault_positions >= 0)[paragraphs] > 0
    data, starts, stops = remove_breaks(
        data, lines.stops[~is_last & ~is_faulty], lines.starts[is_first], lines.stops[is_last]
    )
    texts = Texts(data=data, starts=starts, stops=stops, lines=lines.lines[is_first])
    return texts, is_blank[is_first]


def _begin_with(pattern: re.Pattern[bytes], lines: Texts) -> np.ndarray:
    """Return whether lines begin with a pattern, bool [lines]."""
    begins_here = np.zeros(len(lines.starts), np.bool_)
    begins = np.array([match.start() for match in pattern.finditer(lines.data.data)], np.int64)
    begins_here[np.searchsorted(lines.starts, begins)] = True
    return begins_here


def _texts_between_marks(data: bytes, first_line: int) -> Texts:
    """Return the texts between `END_OF_TEXT`; the line of each is that of its first character."""
    texts = data.split(END_OF_TEXT)
    if not texts[-1].strip():  # the last mark ends a document, it does not begin one
        texts.pop()
    ends = np.cumsum([text.count(b"\n") for text in texts])
    leading = [text[: len(text) - len(text.lstrip())].count(b"\n") for text in texts]
    lines = first_line + np.append(0, ends[:-1])[: len(texts)] + leading
    return Texts.of_rows(texts, lines.tolist())


def _join_articles(lines: Texts) -> Texts:
    """Join lines to documents of one paragraph per line, which several blank lines separate."""
    paragraphs, is_blank = join_paragraphs(lines)
    places = np.flatnonzero(~is_blank)
    data = paragraphs.data.copy()
    data[paragraphs.stops[places[:-1]]] = ord("\n")
    begins = np.flatnonzero(np.concatenate([[True], np.diff(places) > 2]))[: len(places)]
    ends = np.append(begins[1:], len(places))[: len(begins)] - 1
    return Texts(
        data=data,
        starts=paragraphs.starts[places[begins]],
        stops=paragraphs.stops[places[ends]],
        lines=paragraphs.lines[places[begins]],
    )
