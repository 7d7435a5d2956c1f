"""CoNLL files: a word per line with columns, the word's tag among them, and a blank line between
sentences.

Follows the files of CoNLL-2003 (Tjong Kim Sang and De Meulder 2003) and of CoNLL-U
(https://universaldependencies.org/format.html).
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.file_names import name_without_compression
from bert_tf.data.tables.formats.delimited import too_long
from bert_tf.data.tables.text_files import (
    CutLine,
    Opener,
    bounded_lines,
    has_surrogates,
    open_local,
    open_text,
)

ENDINGS = (".conll", ".conllu", ".iob", ".iob2", ".bio", ".txt")
_CONLL_U = ".conllu"
_DOCUMENT_START = "-DOCSTART-"
_LEAST_COLUMNS = 2
_FIRST_LINES = 1000  # that tell how many columns words have
_NOT_A_WORD = re.compile(r"\d+[-.]\d+")  # ids of CoNLL-U's multiword tokens and empty nodes


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConllSentence:
    """A sentence.

    Attributes:
        line: its first line, counted from 1.
        words, tags: of each word.
        lines: the line of each word.
        fault: why it cannot be used, the reason and the detail; None if it can.
        source: its lines as they are, with line ends; all that is before it and after the one
            before (blank lines, comments), and in the last one what is after it.
        first_line: the first line of `source`.
        separator: what is between columns: a tab, or a blank for any number of blanks.
    """

    line: int
    words: list[str]
    tags: list[str]
    lines: list[int]
    fault: tuple[str, str] | None
    source: list[str]
    first_line: int
    separator: str


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
    """Yields the sentences of a file.

    Words have as many columns as most of the first lines, separated by tabs if those have any,
    otherwise by blanks. Lines of `-DOCSTART-` are left out, and comments: lines that begin with `#`
    and, but in CoNLL-U, have another number of columns than words have.

    Args:
        path: the file.
        dialect: encoding, and characters of the longest line.
        word_column: counted from 1; None for the first, in CoNLL-U the second.
        tag_column: counted from 1; None for the last, in CoNLL-U the fourth.
        has_tags: whether there must be a column beside that of words; where there is none, each
            tag is its word.
        opener: opens the file, which may lie on other storage.

    Raises:
        UsageError: the file is missing, or has no such column.
        InputError: it cannot be read.
    """
    is_conll_u = name_without_compression(str(path)).endswith(_CONLL_U)
    default_word, default_tag = (2, 4) if is_conll_u else (1, None)
    columns = _Columns(
        path,
        word_column or default_word,
        (tag_column or default_tag) if has_tags else None,
        least=_LEAST_COLUMNS if has_tags else 1,
    )
    sentence = _Sentence(columns)
    with open_text(path, newline="\n", encoding=dialect.encoding, opener=opener) as stream:
        lines = bounded_lines(stream, dialect.max_row_characters)
        first = list(itertools.islice(lines, _FIRST_LINES))
        columns.begin([line for line in first if not isinstance(line, CutLine)])
        for number, line in enumerate(itertools.chain(first, lines), start=1):
            is_document = _begins_document(line)
            if is_document:
                yield from sentence.ended()
            sentence.keep(line)
            if isinstance(line, CutLine):
                reject = too_long(path, number, dialect)
                sentence.spoil(number, reject.reason, reject.detail)
                continue
            text = line.rstrip("\r\n")
            if not text.strip():
                yield from sentence.ended()
                continue
            if is_document:
                continue
            cells = columns.split(text)
            if text.startswith("#") and (is_conll_u or columns.is_comment(cells)):
                continue
            if is_conll_u and _NOT_A_WORD.fullmatch(cells[0]):
                continue
            if has_surrogates(text):
                sentence.spoil(number, dialect.invalid_text)
                continue
            fault = columns.fault(cells)
            if fault is not None:
                sentence.spoil(number, *fault)
                continue
            sentence.add(number, *columns.word_and_tag(cells))
    yield from sentence.last()


def _begins_document(line: str) -> bool:
    return line.startswith(_DOCUMENT_START) and line.split(maxsplit=1)[0] == _DOCUMENT_START


class _Columns:
    """Where a line has what."""

    def __init__(self, path: str | Path, word: int, tag: int | None, *, least: int):
        self._path = path
        self._word = word
        self._tag = tag
        self._least = least
        self._count = 0
        self._has_tabs = False

    @property
    def separator(self) -> str:
        return "\t" if self._has_tabs else " "

    def split(self, text: str) -> list[str]:
        return text.split("\t") if self._has_tabs else text.split()

    def is_comment(self, cells: list[str]) -> bool:
        """Whether a line that begins with `#` has no word."""
        return len(cells) != self._count

    def fault(self, cells: list[str]) -> tuple[str, str] | None:
        if len(cells) == self._count:
            return None
        needed = self._count or f"at least {self._least}"
        return "wrong number of columns", f"{len(cells)} where a word has {needed}"

    def begin(self, lines: Iterable[str]) -> None:
        """Finds how many columns words have; comments only count where there is nothing else."""
        forms: list[Counter[tuple[int, bool]]] = [Counter(), Counter()]
        for line in lines:
            text = line.rstrip("\r\n")
            if not text.strip() or _begins_document(line):
                continue
            has_tabs = "\t" in text
            count = len(text.split("\t") if has_tabs else text.split())
            if count >= self._least:
                forms[text.startswith("#")][count, has_tabs] += 1
        most = (forms[0] or forms[1]).most_common(1)
        if not most:
            return
        self._count, self._has_tabs = most[0][0]
        for flag, number in (("tokens", self._word), ("tag", self._tag or 1)):
            if number > self._count:
                raise UsageError(
                    f"--{flag}-column {number}: the lines of {self._path} have "
                    f"{self._count} columns"
                )

    def word_and_tag(self, cells: list[str]) -> tuple[str, str]:
        return cells[self._word - 1], cells[(self._tag or self._count) - 1]


class _Sentence:
    """The lines since the end of the last sentence; a sentence comes when the next one ends."""

    def __init__(self, columns: _Columns) -> None:
        self._columns = columns
        self._waiting: ConllSentence | None = None
        self._next_line = 1
        self._clear()

    def _clear(self) -> None:
        self._first = 0
        self._words: list[str] = []
        self._tags: list[str] = []
        self._lines: list[int] = []
        self._fault: tuple[str, str] | None = None
        self._source: list[str] = []

    def keep(self, line: str) -> None:
        self._source.append(line)

    def add(self, line: int, word: str, tag: str) -> None:
        self._first = self._first or line
        self._words.append(word)
        self._tags.append(tag.strip())
        self._lines.append(line)

    def spoil(self, line: int, reason: str, detail: str = "") -> None:
        self._first = self._first or line
        if self._fault is None:
            place = f"line {line}"
            self._fault = reason, f"{place}: {detail}" if detail else place

    def ended(self) -> Iterator[ConllSentence]:
        if not self._first:
            return
        if self._waiting is not None:
            yield self._waiting
        self._waiting = ConllSentence(
            line=self._first,
            words=self._words,
            tags=self._tags,
            lines=self._lines,
            fault=self._fault,
            source=self._source,
            first_line=self._next_line,
            separator=self._columns.separator,
        )
        self._next_line += len(self._source)
        self._clear()

    def last(self) -> Iterator[ConllSentence]:
        yield from self.ended()
        if self._waiting is not None:
            self._waiting.source.extend(self._source)
            yield self._waiting
