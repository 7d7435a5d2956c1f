"""Sentences of CoNLL files: CoNLL-2003 (Tjong Kim Sang and De Meulder 2003), CoNLL-U
(https://universaldependencies.org/format.html), and their relatives: a word per line with its
columns, a blank line between sentences.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bert_tf.base.errors import Fault, UsageError
from bert_tf.data.tables.cells import blank_separated
from bert_tf.data.tables.dialect import TableDialect, name_without_compression
from bert_tf.data.tables.formats.delimited import too_long
from bert_tf.data.tables.text_files import (
    CutLine,
    Opener,
    bounded_lines,
    has_surrogates,
    open_local,
    open_text,
)

COLUMN_NUMBER = re.compile(r"[1-9]\d{0,5}", re.ASCII)  # how columns of CoNLL files are named
ENDINGS = (".conll", ".conllu", ".iob", ".iob2", ".bio", ".txt")
_CONLL_U = ".conllu"
_DOCUMENT_START = "-DOCSTART-"
_LEAST_COLUMNS = 2  # of a word with a tag
_FIRST_LINES = 1000  # from which the form of the file is told
_COMMENT = re.compile(r"#\s+(id|sent_id|text|newdoc|newpar)\b")  # of MultiCoNER and CoNLL-U
_TITLE = "##"  # begins a line before a sentence
# A file has titles if there are so many, and if such a share of the sentences begin with one.
_FEWEST_TITLES = 3
_TITLED = 0.9
# Columns of CoNLL-U, from 1: number of columns, FORM, and UPOS
_CONLL_U_COLUMNS = 10
_CONLL_U_WORD = 2
_CONLL_U_TAG = 4
_WORD_NUMBER = re.compile(r"\d+(?:[-.]\d+)?")  # first column of CoNLL-U and CoNLL-X
_MARKS = (",", ";", "|")  # between columns, where there are neither tabs nor blanks
_ALIKE = 0.9  # share of the lines with as many cells between such marks
_NOT_A_WORD = re.compile(r"\d+[-.]\d+")  # ids of CoNLL-U's multiword tokens and empty nodes


@dataclasses.dataclass(kw_only=True)
class ConllSentence:
    """A sentence of a CoNLL file, with its lines as they are.

    Together, the sentences of a file hold all of its lines, only cutting lines that are too long.
    So the file can be written again with one more column and all else unchanged.
    """

    first_line: int  # number of the first line of `source`, from 1
    # between columns: a tab, one of `_MARKS`, or a blank for any number of blanks
    separator: str = " "
    line: int = 0  # line of its first word or fault, from 1; 0 before that
    words: list[str] = dataclasses.field(default_factory=list)
    tags: list[str] = dataclasses.field(default_factory=list)  # of each word
    lines: list[int] = dataclasses.field(default_factory=list)  # line of each word, from 1
    fault: Fault | None = None  # reason and detail why it cannot be used
    # its lines as they are, with line ends, and the blank lines and comments before it; the last
    # sentence also has those after it
    source: list[str] = dataclasses.field(default_factory=list)


def is_conll(path: str | Path) -> bool:
    """Whether a file is CoNLL by its name, compressed or not."""
    return name_without_compression(str(path)).endswith(ENDINGS)


def read_conll_sentences(
    path: str | Path,
    dialect: TableDialect,
    *,
    word_column: int | None = None,
    tag_column: int | None = None,
    has_tags: bool = True,
    opener: Opener = open_local,
) -> Iterator[ConllSentence]:
    """Yield the sentences of a file.

    Words have as many columns as most of the first lines. Tabs separate the columns if those lines
    have any, else blanks, else commas, semicolons or bars. Lines of `-DOCSTART-` are left out, and
    so are comments: lines of CoNLL-U that begin with `#`; in other files such a line must also have
    another number of columns than words have, or name a sentence.

    Args:
        path: the file.
        dialect: encoding, and the most characters of a line.
        word_column: counted from 1; None for the first, in CoNLL-U the second.
        tag_column: counted from 1; None for the last, in CoNLL-U the fourth.
        has_tags: whether words must have a column of tags; if not, words may be the only column.
        opener: opens the file, which may be on other storage.

    Yields:
        Sentences with at least one word or a fault, in file order.

    Raises:
        UsageError: the file is missing, or has no such column.
        InputError: it cannot be read.
    """
    least = _LEAST_COLUMNS if has_tags else 1
    with open_text(path, newline="\n", encoding=dialect.encoding, opener=opener) as stream:
        lines = bounded_lines(stream, dialect.max_row_characters)
        first = list(itertools.islice(lines, _FIRST_LINES))
        form = _form_of(path, first, least)
        word = word_column or (_CONLL_U_WORD if form.is_conll_u else 1)
        tag = None
        if has_tags:
            tag = tag_column or (_CONLL_U_TAG if form.is_conll_u else None)
        for flag, column in (("tokens", word), ("tag", tag or 1)):
            if 0 < form.columns < column:
                raise UsageError(
                    f"--{flag}-column {column}: the lines of {path} have {form.columns} columns"
                )
        sentences = _Sentences(form.separator or " ")
        for number, line in enumerate(itertools.chain(first, lines), start=1):
            is_document = _begins_document(line)
            if is_document:
                yield from sentences.ended()
            sentences.keep(line)
            text = line.rstrip("\r\n")
            if isinstance(line, CutLine):
                reject = too_long(path, number, dialect)
                sentences.spoil(number, reject.reason, reject.detail)
                continue
            if not text.strip():
                yield from sentences.ended()
                continue
            cells = form.cells(text)
            is_comment = form.is_comment(text, cells, is_first=sentences.is_empty)
            is_no_word = form.is_conll_u and _NOT_A_WORD.fullmatch(cells[0])
            if is_document or is_comment or is_no_word:
                continue
            if has_surrogates(text):
                sentences.spoil(number, dialect.invalid_text)
            elif len(cells) != form.columns:
                needed = form.columns or f"at least {least}"
                detail = f"{len(cells)} where a word has {needed}"
                sentences.spoil(number, "wrong number of columns", detail)
            else:
                sentences.add(number, cells[word - 1], cells[(tag or form.columns) - 1])
    yield from sentences.last()


def _begins_document(line: str) -> bool:
    return line.startswith(_DOCUMENT_START) and line.split(maxsplit=1)[0] == _DOCUMENT_START


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Form:
    """How the lines of a CoNLL file are written."""

    columns: int  # of a word; 0 if no line has enough
    separator: str | None  # a tab, one of `_MARKS`, or None for any number of blanks
    is_conll_u: bool  # whether words are numbered, in ten columns
    has_titles: bool = False  # whether sentences begin with a line `## …`

    def cells(self, text: str) -> list[str]:
        if self.separator is None:
            return blank_separated(text)
        if self.separator in _MARKS:
            return _marked_cells(text, self.separator)
        return text.split(self.separator)

    def is_comment(self, text: str, cells: list[str], *, is_first: bool) -> bool:
        """Whether a line is a comment or a title, not a word.

        KLUE has titles, `## id<tab>text`, with as many cells as words have.

        Args:
            text: the line without its end.
            cells: its cells.
            is_first: whether no word of the sentence was read yet.
        """
        if not text.startswith("#"):
            return False
        if self.is_conll_u or len(cells) != self.columns or _COMMENT.match(text):
            return True
        if not is_first:
            return False
        is_title = self.has_titles and text.startswith(_TITLE)
        is_prose = cells[0][:1] == "#" and " " in cells[0].strip()
        return is_title or is_prose


def _form_of(path: str | Path, first: Sequence[str], least: int) -> _Form:
    """Tell the form of a file from its first lines and its name.

    Args:
        path: the file; CoNLL-U by its extension.
        first: its first lines.
        least: columns that a word must have.
    """
    texts = [
        line.rstrip("\r\n")
        for line in first
        if line.strip() and not isinstance(line, CutLine) and not _begins_document(line)
    ]
    columns, separator = _columns_of(texts, least)
    if columns < _LEAST_COLUMNS:
        for mark in _MARKS:
            by_mark = _columns_by_mark(texts, mark)
            if by_mark:
                columns = by_mark
                separator = mark
                break
    words = [text.split("\t") for text in texts if not text.startswith("#")]
    is_numbered = (
        columns == _CONLL_U_COLUMNS
        and separator == "\t"
        and all(_WORD_NUMBER.fullmatch(cells[0]) for cells in words if len(cells) == columns)
    )
    lines_before = itertools.pairwise(itertools.chain([""], first))
    # First lines of sentences: those after a blank line or at the beginning of the file
    begins = [line for before, line in lines_before if line.strip() and not before.strip()]
    titles = sum(line.startswith(_TITLE) for line in begins)
    return _Form(
        columns=columns,
        separator=separator,
        is_conll_u=is_numbered or name_without_compression(str(path)).endswith(_CONLL_U),
        has_titles=titles >= max(_FEWEST_TITLES, _TITLED * len(begins)),
    )


def _columns_of(texts: Iterable[str], least: int) -> tuple[int, str | None]:
    """Return the usual number of columns and their separator: a tab, or None for blanks.

    Lines that begin with `#` only count if there are no others.
    """
    of_words: Counter[tuple[int, str | None]] = Counter()
    of_comments: Counter[tuple[int, str | None]] = Counter()
    for text in texts:
        separator = "\t" if "\t" in text else None
        count = len(text.split(separator) if separator else blank_separated(text))
        if count >= least:
            forms = of_comments if text.startswith("#") else of_words
            forms[count, separator] += 1
    most = (of_words or of_comments).most_common(1)
    return most[0][0] if most else (0, None)


def _columns_by_mark(texts: Sequence[str], mark: str) -> int:
    """Count the columns that a mark separates; 0 if too many lines have another number."""
    counts = Counter(len(_marked_cells(text, mark)) for text in texts)
    if not counts:
        return 0
    (columns, lines), *_ = counts.most_common(1)
    return columns if columns >= _LEAST_COLUMNS and lines >= _ALIKE * len(texts) else 0


def _marked_cells(text: str, mark: str) -> list[str]:
    """Split a line as CSV, so that cells may be quoted."""
    try:
        return next(csv.reader([text], delimiter=mark))
    except csv.Error:
        return [text]


class _Sentences:
    """Collects the lines since the end of the last sentence.

    A sentence is yielded only when the next one ends, because the last sentence of a file also gets
    the lines after it.
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._waiting: ConllSentence | None = None
        self._now = ConllSentence(first_line=1)

    @property
    def is_empty(self) -> bool:
        """Whether the sentence has neither a word nor a fault yet."""
        return not self._now.line

    def keep(self, line: str) -> None:
        """Add a line of any kind to the source of the sentence."""
        self._now.source.append(line)

    def add(self, line: int, word: str, tag: str) -> None:
        """Add a word, its tag and the number of its line."""
        self._now.line = self._now.line or line
        self._now.words.append(word)
        self._now.tags.append(tag.strip())
        self._now.lines.append(line)

    def spoil(self, line: int, reason: str, detail: str = "") -> None:
        """Mark the sentence as one that cannot be used; the first fault counts."""
        self._now.line = self._now.line or line
        if self._now.fault is None:
            self._now.fault = reason, f"line {line}: {detail}" if detail else f"line {line}"

    def ended(self) -> Iterator[ConllSentence]:
        """End the sentence, if it has a word or a fault, and yield the one before it."""
        if not self._now.line:
            return
        if self._waiting is not None:
            yield self._waiting
        self._now.separator = self._separator
        self._waiting = self._now
        self._now = ConllSentence(first_line=self._now.first_line + len(self._now.source))

    def last(self) -> Iterator[ConllSentence]:
        """End the file and yield the remaining sentences."""
        yield from self.ended()
        if self._waiting is not None:
            self._waiting.source.extend(self._now.source)
            yield self._waiting
