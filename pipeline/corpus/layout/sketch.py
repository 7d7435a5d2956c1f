"""Counts of the beginning of a plain text file, and the layout that follows from them."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from pipeline.corpus.layout.line_ends import (
    FEWEST_BREAKS,
    NARROWEST_MARGIN,
    UNBROKEN_WORD,
    WIDEST_MARGIN,
    LineEnds,
    has_clauses,
    has_evidence,
    measure_lines,
    sentences_continue,
)
from pipeline.corpus.lines import clean_lines
from pipeline.corpus.raw_block import lines_of
from pipeline.corpus.sentences import split_sentences

_OTHER_LINE_END = re.compile(rb"\r(?!\n)|\xc2\x85|\xe2\x80[\xa8\xa9]")
_LINE_ENDS = {b"\r": b"\n", b"\xc2\x85": b" \n"}  # of as many bytes, so that offsets stay
_MANY_TIMES = 10  # as many other line ends as line feeds, where they end lines
END_OF_TEXT = b"<|endoftext|>"  # between the documents of corpora for GPT-2 and the like
# Around the documents of WikiExtractor.
WIKI_BEGIN = b"<doc "
_WIKI_END = b"\n</doc>"

# Thresholds; README.md names the texts that each was chosen on.
_MARGIN_QUANTILE = 0.98  # of widths of lines: a few cross every margin (addresses, tables)
_SHORT_TAIL = 0.8  # of the margin: a last line of a paragraph that is not longer is short
# A line with more columns is more than one sentence, with or without marks; the second is for
# scripts without such marks.
_LONG_LINE = 300
_LONG_LINE_WITHOUT_MARKS = 120
# Shares of the breaks of hard-wrapped text: sentences that end within lines, at least; then lines
# that end with a sentence, at most: of the breaks and per end within a line, where there are such
# ends, and of the breaks elsewhere.
_INNER_ENDS = 1 / 30
_ENDED_BESIDE_INNER = 1 / 3
_ENDED_PER_INNER = 2
_ENDED = 0.5
# Of the breaks, at most, in lists and code: lines that end with a sentence.
_NO_SENTENCES = 0.1
# Of the breaks, at least: lines that reach the margin with the next word.
_REACHING_OF_LISTS = 0.3
_REACHING = 0.75
_SHORT_TAILS = 0.4  # of the paragraphs of several lines, at least: those with a short last line
_FULL = 1 / 4  # of the lines: more full ones make lines paragraphs
_FULL_ROWS = 4 / 5  # of the lines, at least, where each is a document
_INDENTED = 1 / 2  # of the lines, at most, where each is a document
_TITLED = 0.8  # of the files, at least, where a title and one block are a document
# Of the lines, at least, and of the breaks, at most, in pages with headings and lists.
_MARKED = 1 / 10
_ENDED_BESIDE_MARKS = 1 / 3
# Of the blocks, at least, where blank lines separate documents: those of several lines, if hardly
# any line (the first share) is full, if some are, and if many are.
_HARDLY_FULL = 1 / 20
_SEVERAL_SENTENCES = 0.15
_SEVERAL = 0.5
_SEVERAL_FULL = 0.7
# Of the blocks: full lines after full ones, at least, where a line is a paragraph and a block a
# document; headings, at most.
_FULL_BREAKS = 1 / 5
_HEADINGS = 1 / 4
# Stanzas: blocks of as many lines as the one before, at least, of the blocks; their mean lines, at
# most; open lines, and lines with any mark at their end, at least, of the breaks.
_EVEN = 1 / 2
_LONGEST_STANZA = 10
_OPEN = 2 / 5
_MARKED_VERSES = 1 / 20
_ENDED_STANZAS = 0.6  # of the blocks, at least: those that end with a sentence
_THIN_PIECES = 1 / 4  # of the pieces, at most: chapters' headings
_MOST_FILES = 1 / 2  # more of them with a format's marks make it that format
_MARK = re.compile(rb"\s*(?:#{1,6} |[-*+|>] |\d+[.)] |```|\.\. |={4}|-{4}|\*{4}|~{4})")
_INDENTS = (b"  ", b"\t", b"\xe3\x80\x80")  # of paragraphs
_LONG_ROW = 1000  # characters of a document rather than of a paragraph
# Rows of a file, where each is a document.
_FEWEST_ROWS = 50
_FEWEST_LONG_ROWS = 5
_FEW_FILES = 3  # may hold many documents each; more files are documents
_MANY_PIECES = 10  # of a file, which are documents in many files, too
# A larger file is no single article or book (the Bible has 4 MB).
_LARGEST_DOCUMENT = 32_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sketch:
    """Counts that tell layouts apart; those of several files add up."""

    files: int = 0  # that have text
    text_bytes: int = 0  # looked at
    file_bytes: int = 0  # of the whole files, before compression, about
    lines: int = 0  # with text
    characters: int = 0  # of them
    full_lines: int = 0  # of several sentences, or too long for one
    indented_lines: int = 0  # that begin as paragraphs in a book do
    # That begin as headings, items and tables do in Markdown or reStructuredText.
    marked_lines: int = 0
    groups: int = 0  # of lines without a blank one between them
    single_groups: int = 0  # of one line
    titled_files: int = 0  # that begin with such a group
    wrapped_breaks: int = 0  # where the next word would have crossed the margin of the file
    chance_breaks: int = 0  # where the first word of another line would have
    open_breaks: int = 0  # after no mark that ends a sentence
    continued_breaks: int = 0  # of them, after a comma, or where the next line is in lower case
    comma_breaks: int = 0  # of the open ones, those after a comma
    lower_begins: int = 0  # other lines that begin in lower case
    inner_ends: int = 0  # of lines before a break, those with a sentence that ends within them
    full_breaks: int = 0  # where a full line follows another
    headings: int = 0  # single groups that are short and have no mark at their end
    even_groups: int = 0  # of as many lines as the group before, several
    ended_groups: int = 0  # whose last line has a mark that ends a sentence
    short_tails: int = 0  # last lines of groups of several lines that end well before the margin
    pieces: int = 0  # parts between two or more blank lines in a row
    thin_pieces: int = 0  # of one or two lines that are sentences or headings
    single_gaps: int = 0  # a single blank line between two groups
    wiki_documents: int = 0  # that WikiExtractor's tags begin
    wiki_files: int = 0  # that begin with such a tag, or hold several
    marked_files: int = 0  # where `END_OF_TEXT` separates documents
    end_marks: int = 0  # number of `END_OF_TEXT`, except one at the end

    def __add__(self, other: Sketch) -> Sketch:
        return Sketch(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    @property
    def breaks(self) -> int:
        """Ends of lines inside a group."""
        return self.lines - self.groups

    @property
    def ended_breaks(self) -> int:
        """Ends of lines inside a group, after a mark that ends a sentence."""
        return self.breaks - self.open_breaks

    @property
    def is_wrapped(self) -> bool:
        """Whether lines end at a margin, not with sentences; fewer reach it in lists and code."""
        if sentences_continue(
            self.lines, self.breaks, self.open_breaks, self.continued_breaks, self.lower_begins
        ):
            return True
        if has_clauses(self.breaks, self.ended_breaks, self.comma_breaks):
            return True
        has_ends_within = 0 < self.breaks * _INNER_ENDS <= self.inner_ends
        most_ended = min(_ENDED_BESIDE_INNER * self.breaks, _ENDED_PER_INNER * self.inner_ends)
        if has_ends_within and self.ended_breaks <= most_ended:
            return True  # parts have margins of their own
        has_no_sentences = self.ended_breaks <= _NO_SENTENCES * self.breaks
        reaching = _REACHING_OF_LISTS if has_no_sentences else _REACHING
        marked_breaks = self.ended_breaks + self.continued_breaks
        short_lines = self.breaks - self.wrapped_breaks
        short_by_chance = self.breaks - self.chance_breaks
        return (
            self.breaks >= FEWEST_BREAKS
            and has_evidence(self.breaks, marked_breaks, short_lines, short_by_chance)
            and self.wrapped_breaks >= reaching * self.breaks
            and self.ended_breaks <= _ENDED * self.breaks
            and self.short_tails >= _SHORT_TAILS * (self.groups - self.single_groups)
        )

    @property
    def is_full(self) -> bool:
        """Whether lines are paragraphs rather than sentences."""
        return self.full_lines > _FULL * self.lines

    @property
    def has_gaps(self) -> bool:
        """Whether blank lines are between lines."""
        return self.groups > self.files

    def layout(self, num_files: int) -> str:
        """Return the layout (`CorpusSection.text_layout`) in a corpus of `num_files` text files."""
        if not self.files:
            return "file"
        if self.wiki_files > _MOST_FILES * self.files:
            return "wikiextractor"
        if self.marked_files > _MOST_FILES * self.files:
            return "endoftext"
        if not self.has_gaps:
            has_rows = not self.is_wrapped and self._has_rows(num_files)
            return "lines" if has_rows else "file"
        if not self.is_wrapped and self._has_documents_of_lines():
            return "paragraph_lines" if self.is_full else "sentences"
        is_large = self.file_bytes > _LARGEST_DOCUMENT * self.files
        if self._has_articles(num_files, is_large):
            return "articles"
        if self.is_wrapped:
            return "paragraphs"
        return "paragraph_lines" if is_large else "file"

    def documents(self, layout: str) -> int:
        """Return the number of documents that the sketched text has in a layout."""
        return {
            "sentences": self.groups,
            "paragraph_lines": self.groups,
            "lines": self.lines,
            "articles": self.pieces,
            "endoftext": self.end_marks + self.marked_files,
            "wikiextractor": self.wiki_documents,
        }.get(layout, self.files)

    def description(self, layout: str) -> str:
        """Say in words how the text is laid out."""
        if layout == "file":
            if self.has_gaps:
                return "paragraphs separated by blank lines"
            if self.is_wrapped:
                return "hard-wrapped lines, a document per file"
            unit = "paragraph" if self.is_full else "sentence"
            return f"a {unit} per line, a document per file"
        return {
            "sentences": "a sentence per line, blank lines between documents",
            "paragraph_lines": "a paragraph per line, blank lines between documents",
            "paragraphs": "hard-wrapped paragraphs separated by blank lines",
            "lines": "a document per line",
            "articles": "paragraphs separated by a blank line, documents by several",
            "endoftext": "documents separated by <|endoftext|>",
            "wikiextractor": "WikiExtractor's documents",
        }[layout]

    def _has_rows(self, num_files: int) -> bool:
        """Whether each line is a document: most are long, and a file has many."""
        has_paragraphs = self.full_lines >= _FULL_ROWS * self.lines
        if not has_paragraphs or self.indented_lines > _INDENTED * self.lines:
            return False
        is_long = self.characters >= _LONG_ROW * self.lines
        rows = self.lines / self.files
        if num_files > _FEW_FILES:
            return rows >= 2 * _FEWEST_ROWS
        return rows >= (_FEWEST_LONG_ROWS if is_long else _FEWEST_ROWS)

    def _has_documents_of_lines(self) -> bool:
        """Whether blank lines separate documents of several lines, or of sentences."""
        several = self.groups - self.single_groups
        if self.groups <= 2 * self.files and self.titled_files >= _TITLED * self.files:
            return False  # a title, a blank line and the lines of one document
        if self._has_stanzas():
            return False
        # Several paragraphs in a row: blank lines separate documents, if not below headings.
        is_headed = self.headings > _HEADINGS * self.groups
        if self.full_breaks >= _FULL_BREAKS * self.groups and not is_headed:
            return True
        # Headings, lists and code of a page. Dialogs have marks, too, but also sentences.
        has_marks = self.marked_lines >= _MARKED * self.lines
        if has_marks and self.ended_breaks <= _ENDED_BESIDE_MARKS * self.breaks:
            return False
        if self.full_lines <= _HARDLY_FULL * self.lines:
            return several >= _SEVERAL_SENTENCES * self.groups
        return several >= (_SEVERAL_FULL if self.is_full else _SEVERAL) * self.groups

    def _has_stanzas(self) -> bool:
        """Whether blank lines separate stanzas: even in length, with few ends of sentences."""
        marked_breaks = self.ended_breaks + self.comma_breaks
        return (
            self.even_groups >= _EVEN * self.groups
            and self.lines <= _LONGEST_STANZA * self.groups
            and self.ended_groups >= _ENDED_STANZAS * self.groups
            and self.open_breaks >= _OPEN * self.breaks
            and marked_breaks >= _MARKED_VERSES * self.breaks
        )

    def _has_articles(self, num_files: int, is_large: bool) -> bool:
        """Whether several blank lines separate documents of paragraphs, not chapters' headings."""
        return (
            self.pieces >= 2 * self.files
            and self.single_gaps >= self.pieces
            and self.thin_pieces <= _THIN_PIECES * self.pieces
            and (is_large or num_files <= _FEW_FILES or self.pieces >= _MANY_PIECES * self.files)
        )


def has_other_line_ends(head: bytes) -> bool:
    """Whether CR, NEL, or Unicode's line or paragraph separator end the lines of a file."""
    others = len(_OTHER_LINE_END.findall(head))
    return others > _MANY_TIMES * head.count(b"\n")


def with_line_feeds(data: bytes) -> bytes:
    """Replace line ends other than CRLF and LF by line feeds; the length stays."""
    return _OTHER_LINE_END.sub(lambda end: _LINE_ENDS.get(end[0], b"  \n"), data)


def sketch_text(head: bytes, file_bytes: int) -> Sketch:
    """Sketch the beginning of a file.

    Args:
        head: whole lines, which end with line feeds.
        file_bytes: approximate size of the file before compression.
    """
    lines = lines_of(head, 1)
    clean = clean_lines(lines.data, lines.starts, lines.stops)
    has_text = (clean.lengths > 0) | (clean.fault_positions >= 0)
    places = np.flatnonzero(has_text)
    if not len(places):
        return Sketch()
    starts = clean.offsets[:-1][places]
    stops = clean.offsets[1:][places] - 1
    _, _, sentences = split_sentences(clean.data, starts, stops)
    gaps = np.diff(places) - 1  # blank lines after each line but the last
    ends = measure_lines(clean.data, starts, stops, gaps == 0)
    size = Sketch(
        files=1,
        text_bytes=len(head),
        file_bytes=max(file_bytes, len(head)),
        lines=len(places),
        characters=int(ends.widths.sum()),
    )
    return (
        size
        + _sketch_blocks(gaps, ends, sentences)
        + _sketch_ends(ends)
        + _sketch_margin(ends, sentences)
        + _sketch_marks(head, lines.starts[places].tolist())
    )


def _sketch_blocks(gaps: np.ndarray, ends: LineEnds, sentences: np.ndarray) -> Sketch:
    """Count full lines, groups of lines, and pieces, which several blank lines separate.

    Args:
        gaps: int64 [lines - 1], blank lines after each line but the last.
        ends: the ends of the lines.
        sentences: int64 [lines], number of sentences in each line.
    """
    longest = np.where(ends.unbroken == UNBROKEN_WORD, _LONG_LINE_WITHOUT_MARKS, _LONG_LINE)
    is_full = (sentences > 1) | (ends.widths > longest)
    is_break = ends.is_break
    is_single = ~is_break & ~_is_inside(ends)
    group_sizes = np.diff(np.flatnonzero(np.concatenate([[True], gaps > 0, [True]])))
    is_even = (group_sizes[1:] == group_sizes[:-1]) & (group_sizes[1:] > 1)
    piece_bounds = np.flatnonzero(np.concatenate([[True], gaps > 1, [True]]))
    is_text = is_full | is_break | _is_inside(ends)
    pieces_with_text = np.logical_or.reduceat(is_text, piece_bounds[:-1])
    is_thin = (np.diff(piece_bounds) <= 2) & ~pieces_with_text
    return Sketch(
        full_lines=int(is_full.sum()),
        full_breaks=int((is_break & is_full & np.append(is_full[1:], False)).sum()),
        headings=int((is_single & ~is_full & ~ends.is_ended).sum()),
        groups=len(group_sizes),
        single_groups=int((group_sizes == 1).sum()),
        titled_files=int(group_sizes[0] == 1),
        even_groups=int(is_even.sum()),
        pieces=len(piece_bounds) - 1,
        thin_pieces=int(is_thin.sum()),
        single_gaps=int((gaps == 1).sum()),
    )


def _is_inside(ends: LineEnds) -> np.ndarray:
    """Tell lines that are inside a group, after its first line; bool [lines]."""
    return np.append(False, ends.is_break[:-1])


def _sketch_ends(ends: LineEnds) -> Sketch:
    """Count lines and groups by the marks at their ends and the case of their beginnings."""
    return Sketch(
        open_breaks=int(ends.is_open.sum()),
        continued_breaks=int(ends.is_continued.sum()),
        comma_breaks=int(ends.has_comma.sum()),
        lower_begins=int(ends.begins_lower.sum()),
        ended_groups=int((ends.is_ended & ~ends.is_break).sum()),
    )


def _sketch_margin(ends: LineEnds, sentences: np.ndarray) -> Sketch:
    """Count signs of a margin at which lines are wrapped; all are 0 without a margin.

    Args:
        ends: the ends of the lines.
        sentences: int64 [lines], number of sentences in each line.
    """
    is_break = ends.is_break
    if is_break.sum() < FEWEST_BREAKS:
        return Sketch()
    margin = np.quantile(ends.widths[is_break], _MARGIN_QUANTILE)
    if not NARROWEST_MARGIN <= margin <= WIDEST_MARGIN:
        return Sketch()
    is_short = ends.widths <= _SHORT_TAIL * margin
    return Sketch(
        inner_ends=int((is_break & (sentences > 1)).sum()),
        wrapped_breaks=int((is_break & (ends.next_widths > margin)).sum()),
        chance_breaks=int((is_break & (ends.other_widths > margin)).sum()),
        short_tails=int((_is_inside(ends) & ~is_break & is_short).sum()),
    )


def _sketch_marks(head: bytes, line_starts: list[int]) -> Sketch:
    """Count indents, marks of Markdown and the like, and marks between documents.

    Args:
        head: the beginning of the file.
        line_starts: byte where each line with text begins.
    """
    marks = [_MARK.match(head, start) is not None for start in line_starts]
    wiki_documents = head.count(b"\n" + WIKI_BEGIN) + head.startswith(WIKI_BEGIN)
    has_wiki_documents = wiki_documents > 1 and _WIKI_END in head
    is_wiki = head.startswith(WIKI_BEGIN, line_starts[0]) or has_wiki_documents
    text = head.rstrip()
    ends_marked = text.endswith(END_OF_TEXT)
    end_marks = text.count(END_OF_TEXT) - ends_marked
    return Sketch(
        indented_lines=sum(head.startswith(_INDENTS, start) for start in line_starts),
        marked_lines=sum(marks),
        wiki_documents=wiki_documents,
        wiki_files=int(is_wiki),
        marked_files=int(ends_marked or end_marks > 1),
        end_marks=end_marks,
    )
