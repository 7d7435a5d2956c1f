"""Rows that are lists of words, in blocks: CoNLL-2003 (Tjong Kim Sang and De Meulder 2003),
CoNLL-U (https://universaldependencies.org/format.html), and tables with words.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.base.errors import Fault, UsageError
from bert_tf.base.wording import shortened
from bert_tf.data.tables.cells import (
    blank_separated,
    cell_text,
    text_fault_of_words,
    words_of,
)
from bert_tf.data.tables.dialect import TableDialect, name_without_compression
from bert_tf.data.tables.formats.delimited import ParsedRow, too_long
from bert_tf.data.tables.rejects import Reject, column_is_empty, column_is_not_words
from bert_tf.data.tables.tables import TableBlock, blocks_of_rows, read_table_blocks
from bert_tf.data.tables.text_files import (
    CutLine,
    Opener,
    bounded_lines,
    has_surrogates,
    open_local,
    open_text,
)

TOKENS = "tokens"  # column of words where none is named, and always of CoNLL's sentences
COLUMN_NUMBER = re.compile(r"[1-9]\d{0,5}", re.ASCII)  # how columns of CoNLL files are named
ENDINGS = (".conll", ".conllu", ".iob", ".iob2", ".bio", ".txt")
_CONLL_U = ".conllu"
_DOCUMENT_START = "-DOCSTART-"
_LEAST_COLUMNS = 2
_SINGLE_WORDS = 0.8
_LEAST_ROWS = 3
_FIRST_LINES = 1000  # that tell how many columns words have
_COMMENT = re.compile(r"#\s+(id|sent_id|text|newdoc|newpar)\b")  # of MultiCoNER and CoNLL-U
_TITLE = "##"  # of a line before a sentence
# Titles, and share of the sentences that begin with one.
_FEWEST_TITLES = 3
_TITLED = 0.9
_CONLL_U_COLUMNS = 10
_WORD_NUMBER = re.compile(r"\d+(?:[-.]\d+)?")  # first column of CoNLL-U and CoNLL-X
_MARKS = (",", ";", "|")  # between columns, where there are neither tabs nor blanks
_ALIKE = 0.9  # of the lines have as many cells between such marks
_NOT_A_WORD = re.compile(r"\d+[-.]\d+")  # ids of CoNLL-U's multiword tokens and empty nodes


@dataclasses.dataclass(kw_only=True)
class ConllSentence:
    """A sentence of a CoNLL file, with its lines as they are.

    Together, the sentences of a file have all of its lines (of one that is too long only the
    beginning), so that it can be written again with one more column and all else unchanged.
    """

    first_line: int  # of `source`
    separator: str = " "  # what is between columns: a tab, or a blank for any number of blanks
    line: int = 0  # its first line, counted from 1
    words: list[str] = dataclasses.field(default_factory=list)
    tags: list[str] = dataclasses.field(default_factory=list)  # of each word
    lines: list[int] = dataclasses.field(default_factory=list)  # of each word
    fault: Fault | None = None  # reason and detail why it cannot be used
    # its lines as they are, with line ends; all that is before it and after the one before (blank
    # lines, comments), and in the last one what is after it
    source: list[str] = dataclasses.field(default_factory=list)


def is_conll(path: str | Path) -> bool:
    """Whether a file's name, compressed or not, is that of a CoNLL file."""
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

    Words have as many columns as most of the first lines, separated by tabs if those have any,
    otherwise by blanks, or by commas, semicolons or bars if there are none of either. Lines of
    `-DOCSTART-` are left out, and comments: lines that begin with `#` and, but in CoNLL-U, have
    another number of columns than words have, or name a sentence.

    Args:
        path: the file.
        dialect: encoding, and the most characters of a line.
        word_column: counted from 1; None for the first, in CoNLL-U the second.
        tag_column: counted from 1; None for the last, in CoNLL-U the fourth.
        has_tags: whether a column of tags must follow; where there is none, each tag is its word.
        opener: opens the file, which may be on other storage.

    Yields:
        Sentences with a word at least or a fault, also those that cannot be used.

    Raises:
        UsageError: the file is missing, or has no such column.
        InputError: it cannot be read.
    """
    least = _LEAST_COLUMNS if has_tags else 1
    with open_text(path, newline="\n", encoding=dialect.encoding, opener=opener) as stream:
        lines = bounded_lines(stream, dialect.max_row_characters)
        first = list(itertools.islice(lines, _FIRST_LINES))
        form = _form_of(path, first, least)
        default_word, default_tag = (2, 4) if form.is_conll_u else (1, None)
        word = word_column or default_word
        tag = (tag_column or default_tag) if has_tags else None
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
        """Whether a line, perhaps the `is_first` of a sentence, is no word.

        `## id<tab>text` of KLUE has as many cells as words have.
        """
        if not text.startswith("#"):
            return False
        if self.is_conll_u or len(cells) != self.columns or _COMMENT.match(text):
            return True
        is_title = self.has_titles and text.startswith(_TITLE)
        return is_first and (is_title or (cells[0][:1] == "#" and " " in cells[0].strip()))


def _form_of(path: str | Path, first: Sequence[str], least: int) -> _Form:
    """Tell from the first lines of a file, and its name, how it is written.

    Args:
        path: CoNLL-U if the name ends so.
        first: first lines.
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
    begins = [line for before, line in lines_before if line.strip() and not before.strip()]
    titles = sum(line.startswith(_TITLE) for line in begins)
    return _Form(
        columns=columns,
        separator=separator,
        is_conll_u=is_numbered or name_without_compression(str(path)).endswith(_CONLL_U),
        has_titles=titles >= max(_FEWEST_TITLES, _TITLED * len(begins)),
    )


def _columns_of(texts: Iterable[str], least: int) -> tuple[int, str | None]:
    """Count the columns of words, and tell a tab from blanks (None), which separate them.

    Comments only count where there is nothing else.
    """
    forms: list[Counter[tuple[int, str | None]]] = [Counter(), Counter()]
    for text in texts:
        has_tab = "\t" in text
        count = len(text.split("\t") if has_tab else blank_separated(text))
        if count >= least:
            forms[text.startswith("#")][count, "\t" if has_tab else None] += 1
    most = (forms[0] or forms[1]).most_common(1)
    return most[0][0] if most else (0, None)


def _columns_by_mark(texts: Sequence[str], mark: str) -> int:
    """Count the columns that a mark separates; 0 if lines do not have equally many."""
    counts = Counter(len(_marked_cells(text, mark)) for text in texts)
    if not counts:
        return 0
    (columns, lines), *_ = counts.most_common(1)
    return columns if columns >= _LEAST_COLUMNS and lines >= _ALIKE * len(texts) else 0


def _marked_cells(text: str, mark: str) -> list[str]:
    """Split a line as CSV does, which may quote its cells."""
    try:
        return next(csv.reader([text], delimiter=mark))
    except csv.Error:
        return [text]


class _Sentences:
    """Collects the lines since the end of the last sentence.

    A sentence comes out only when the next one ends, because the last sentence also gets the lines
    after it.
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._waiting: ConllSentence | None = None
        self._now = ConllSentence(first_line=1)

    @property
    def is_empty(self) -> bool:
        """Whether no word has come since the last sentence."""
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
        """End the file and yield what is left."""
        yield from self.ended()
        if self._waiting is not None:
            self._waiting.source.extend(self._now.source)
            yield self._waiting


def read_word_blocks(
    path: str,
    *,
    column: str,
    dialect: TableDialect,
    block_rows: int,
    max_rows: int = 0,
    as_lines: bool = False,
    console: Console | None = None,
    opener: Opener = open_local,
) -> Iterator[TableBlock]:
    """Read rows of words in blocks, as `read_table_blocks` does.

    Args:
        path: CoNLL by its name, with the one column `tokens`; otherwise a table.
        column: of the words: a list, its JSON text, or words with blanks between them. In CoNLL
            files a number, from 1; any other name means the usual column there.
        dialect: how the file is written.
        block_rows: rows read at once, rejected ones included.
        max_rows: read only the first rows, rejected ones included (0: all).
        as_lines: whether `raw_rows` of CoNLL are those that `with_tags` takes, otherwise JSON.
        console: gets notes on how the file is read; None for none.
        opener: opens the file, which may be on other storage.

    Raises:
        InputError, UsageError: as `read_table_blocks`.
    """
    if is_conll(path):
        dialect.check_no_id_column(path, "sentences of CoNLL files have no columns")
        number = int(column) if COLUMN_NUMBER.fullmatch(column) else None
        sentences = read_conll_sentences(
            path, dialect, word_column=number, has_tags=False, opener=opener
        )
        rows = _conll_rows(path, sentences, as_lines=as_lines)
        rows = itertools.islice(rows, max_rows or None)
        yield from blocks_of_rows(path, rows, (TOKENS,), block_rows, noun="sentence")
        return
    for block in read_table_blocks(
        path,
        dialect=dialect,
        block_rows=block_rows,
        list_columns=[column],
        max_rows=max_rows,
        console=console,
        opener=opener,
    ):
        faults = (_words_fault(row.get(column), column) for row in block.rows)
        yield block.rejecting(path, faults)


def row_words(block: TableBlock, column: str) -> list[list[str]]:
    """Return the words of each row of a block of `read_word_blocks`."""
    return [words_of(row[column]) or [] for row in block.rows]


def are_single_words(values: Sequence[object]) -> bool:
    """Whether nearly all cells have one word, so that a row is a word and no sentence."""
    filled = [value for value in values if value not in (None, "")]
    single = 0
    for value in filled:
        words = [] if isinstance(value, list) else cell_text(value).split()
        if len(words) == 1 and not words[0].startswith("["):
            single += 1
    return len(filled) >= _LEAST_ROWS and single >= _SINGLE_WORDS * len(filled)


def with_tags(raw: str, tags: Sequence[str]) -> str:
    """Return the lines of a sentence with one more column, without the last line end.

    Args:
        raw: from `read_word_blocks` with `as_lines`.
        tags: of each word.
    """
    pieces = json.loads(raw)
    ends = itertools.chain(tags, [""])
    return "".join(itertools.chain.from_iterable(zip(pieces, ends, strict=True)))


def tag_separator(raw: str) -> str:
    """Return the separator of the columns of such a sentence: a tab, a blank or a mark."""
    separator: str = json.loads(raw)[0][-1]
    return separator


def _words_fault(value: object, column: str) -> Fault | None:
    """Return reason and detail if a cell has no words; None if it can be used."""
    if value is None:
        return column_is_empty(column), ""
    words = words_of(value)
    if words is None:
        return column_is_not_words(column), shortened(value)
    return text_fault_of_words(" ".join(words))


def _conll_rows(
    path: str, sentences: Iterable[ConllSentence], *, as_lines: bool
) -> Iterator[ParsedRow]:
    """Turn sentences into rows with the one column `tokens`, those with a fault into rejects."""
    for each in sentences:
        fault = each.fault or text_fault_of_words(" ".join(each.words))
        if fault is not None:
            yield each.line, "", Reject(path, each.line, *fault)
            continue
        row = {TOKENS: each.words}
        yield each.line, _pieces(each) if as_lines else json.dumps(row, ensure_ascii=False), row


def _pieces(sentence: ConllSentence) -> str:
    """Write a sentence as a JSON list of texts: its source, cut where the tags of its words go."""
    pieces = [""]
    of_words = {line - sentence.first_line for line in sentence.lines}
    for index, line in enumerate(sentence.source):
        if index not in of_words:
            pieces[-1] += line
            continue
        text = line.rstrip("\r\n")
        pieces[-1] += text + sentence.separator
        pieces.append(line[len(text) :])
    pieces[-1] = pieces[-1].removesuffix("\n")
    return json.dumps(pieces, ensure_ascii=False)
