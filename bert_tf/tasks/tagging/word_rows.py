"""Sentences of tables with a word per row, and errors for rows that cannot be in their order.

A column names the sentence of each word, and another one may name the document in which sentences
are counted; or blank lines end sentences.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.wording import quantity
from bert_tf.data.tables.cells import GAPS, cell_text, check_columns
from bert_tf.data.tables.formats.conll import ConllSentence
from bert_tf.data.tables.places import Places
from bert_tf.data.tables.rejects import Reject, column_is_empty
from bert_tf.data.tables.tables import TableBlock
from bert_tf.data.tables.word_blocks import are_single_words
from bert_tf.tasks.tagging.row_forms import TableForm, TagColumns, TaggedText, sentence_row

_SENTENCE = re.compile(
    r"sent(ence)?[ _-]*((id|idx|index|no|num|number|nr)[ #.:]*|[#.:][ #.:]*)?", re.IGNORECASE
)
_DOCUMENT = re.compile(
    r"(doc(ument)?|article|file(name)?|text(?=[ _-]?[in]))"
    r"([ _-]?(id|idx|index|no|num|number|nr|name))?",
    re.IGNORECASE,
)
_LAST_NUMBER = re.compile(r"(\d{1,18})\D*")
_FEWEST_WORDS = 3  # of the last sentence of a document, unless a mark ends it
_MOST_SENTENCES = 0.75  # per row; a column with more changes does not name sentences


def with_sentences(
    path: str | Path, columns: TagColumns, form: TableForm, block: TableBlock
) -> TableForm:
    """Complete the form of a table with the separation of sentences, if each row is a word.

    Args:
        path: the table, for messages.
        columns: names from the options.
        form: the form of the table so far.
        block: the first rows, by which they are judged.

    Raises:
        UsageError: it is unclear which rows make a sentence, or a named column is missing.
    """
    values = [row.get(form.tokens) for row in block.rows]
    likely = (name for name in block.columns if _SENTENCE.fullmatch(name.strip()))
    sentence = columns.sentence or next(likely, None)
    has_lists = any(cell_text(value).lstrip().startswith("[") for value in values)
    is_named = columns.sentence in block.columns and not has_lists
    if not is_named and not are_single_words(values):
        return form
    if sentence is None:
        if any(row is None for _, row in _rows_and_ends([block], form)):
            return dataclasses.replace(form, ends_at_blank_lines=True)
        raise UsageError(
            f"{path}: most rows hold a single word in {form.tokens!r}; name the column of the "
            "sentence by --sentence-column NAME, or put blank lines between sentences"
        )
    check_columns(path, block.header, block.columns, (sentence,))
    if _sentences(block.rows, sentence) > max(_MOST_SENTENCES * len(block.rows), 2):
        raise UsageError(
            f"{path}: column {sentence!r} differs in nearly every row, so each word would be a "
            "sentence; name the column of sentences by --sentence-column"
        )
    others = (name for name in block.columns if name not in (form.tokens, form.tags, sentence))
    document = next((name for name in others if _DOCUMENT.fullmatch(name.strip())), None)
    return dataclasses.replace(form, sentence=sentence, document=document)


def _sentence_name(row: dict[str, Any], column: str) -> str:
    """Return the name of a row's sentence; "" if the row continues the sentence before."""
    name = cell_text(row.get(column)).strip()
    return "" if name.lower() in GAPS else name


def _sentences(rows: Iterable[dict[str, Any]], column: str) -> int:
    """Count changes of the column; blank cells continue a sentence."""
    count = 0
    before = ""
    for row in rows:
        value = _sentence_name(row, column)
        if value and value != before:
            count += 1
            before = value
    return count


def sentences_of_rows(
    path: str | Path,
    blocks: Iterable[TableBlock],
    form: TableForm,
    console: Console | None,
    places: Places,
) -> Iterator[TaggedText]:
    """Join rows with a word each to sentences; a row that cannot be used spoils its sentence.

    Args:
        path: the table, for messages.
        blocks: all rows of the table.
        form: result of `with_sentences`.
        console: receives notes on the separation of sentences; None for none.
        places: places of the rows read so far, for messages.

    Raises:
        InputError: a sentence comes again after others, see `_SentenceOrder`.
    """
    order = _SentenceOrder(path, form, places)
    if console is not None:
        ends = "blank lines end sentences"
        if form.sentence:
            columns = " and ".join(map(repr, filter(None, (form.document, form.sentence))))
            ends = f"words with one {columns} are a sentence (--sentence-column)"
        console.info(f"{path}: a word per row; {ends}")
    now: ConllSentence | None = None
    key: tuple[str, ...] = ()
    for line, row in _rows_and_ends(blocks, form):
        if row is None:
            if now is not None:
                yield sentence_row(now)
            now = None
            continue
        row_key = _sentence_key(row, form, key)
        if now is None or row_key != key:
            if now is not None:
                yield sentence_row(now)
            order.begin(row_key, line, now)
            now = ConllSentence(first_line=line, line=line)
            key = row_key
        if isinstance(row, Reject):
            place = f"line {places.at(line)}"
            if row.detail:
                place += f": {row.detail}"
            now.fault = now.fault or (row.reason, place)
            continue
        word = cell_text(row.get(form.tokens)).strip()
        tag = cell_text(row.get(form.tags)).strip()
        for column, text in ((form.tokens, word), (form.tags, tag)):
            if not text:
                now.fault = now.fault or (column_is_empty(column), f"line {places.at(line)}")
        now.words.append(word)
        now.tags.append(tag)
        now.lines.append(line)
    if now is not None:
        yield sentence_row(now)
    order.end(now)
    if console is not None:
        console.info(*order.notes())


def _rows_and_ends(
    blocks: Iterable[TableBlock], form: TableForm
) -> Iterator[tuple[int, dict[str, Any] | Reject | None]]:
    """Yield line and row of each row, and None in place of a row for each blank line.

    Rows without word and tag, as pandas writes blank lines, count as blank lines. If a column names
    sentences, blank lines have no meaning and are left out.
    """
    expected = None  # the line after the last row, if known
    for block in blocks:
        line_ends = dict(zip(block.lines, map(_line_ends, block.raw_rows), strict=True))
        for line, row in block.in_order():
            if form.sentence is None:
                if expected is not None and line > expected:
                    yield line, None
                expected = line + 1 + line_ends[line] if line in line_ends else None
                if isinstance(row, dict) and not _has_word_or_tag(row, form):
                    yield line, None
                    continue
            yield line, row


def _has_word_or_tag(row: dict[str, Any], form: TableForm) -> bool:
    cells = (row.get(column) for column in (form.tokens, form.tags))
    return any(cell_text(cell).strip() for cell in cells)


def _line_ends(raw: str) -> int:
    """Count the line ends inside a row: LF, CR or CRLF."""
    return raw.count("\n") + raw.count("\r") - raw.count("\r\n")


def _sentence_key(
    row: dict[str, Any] | Reject, form: TableForm, before: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the key of the sentence that a row belongs to.

    It consists of the names of document and sentence. A blank cell repeats the one before it.
    """
    columns = [column for column in (form.document, form.sentence) if column is not None]
    if isinstance(row, Reject) or not columns:
        return before
    names = [_sentence_name(row, column) for column in columns]
    before = before or ("",) * len(columns)
    return tuple(name or last for name, last in zip(names, before, strict=True))


class _SentenceOrder:
    """Refuses a sentence whose name comes again after other sentences.

    Shuffled rows look like that: the words of a sentence stand apart. But names also come again
    where sentences are counted in each of several documents. Such names are numbers that always
    begin with the first one and count up by one, and the last sentence before a new beginning looks
    complete: it ends with a mark, or has enough words. Then equal names are different sentences.
    """

    def __init__(self, path: str | Path, form: TableForm, places: Places):
        self._path = path
        self._form = form
        self._places = places
        self._seen: dict[tuple[str, ...], int] = {}
        self._first: tuple[str, ...] = ()
        self._number: int | None = None
        self._counts_up = True
        self._restarts = 0

    def begin(self, key: tuple[str, ...], line: int, last: ConllSentence | None) -> None:
        """Note that a sentence begins.

        Args:
            key: key of the sentence, see `_sentence_key`.
            line: its first line.
            last: the sentence before; None for the first.

        Raises:
            InputError: it is not a new sentence.
        """
        if self._form.sentence is None:
            return
        number = _last_number(key[-1])
        is_known = key in self._seen
        is_restart = is_known and key == self._first and self._may_end_document(last)
        if is_restart:
            self._restarts += 1
            self._seen.clear()
        elif self._number is None or number is None:
            self._counts_up &= not self._seen and number is not None
        else:
            self._counts_up &= number == self._number + 1
        if (is_known and not is_restart) or (self._restarts and not self._counts_up):
            raise self._returns(key, line)
        self._first = self._first or key
        self._number = number
        self._seen[key] = line

    def end(self, last: ConllSentence | None) -> None:
        """Refuse a last sentence that is only a stray word of the first, not a new document."""
        key, line = next(reversed(self._seen.items()), ((), 0))
        if self._restarts and len(self._seen) == 1 and not self._may_end_document(last):
            raise self._returns(key, line)

    def _returns(self, key: tuple[str, ...], line: int) -> InputError:
        """Return the error for a sentence that comes again."""
        known = self._seen.get(key, line)
        where = f", which began at line {self._places.at(known)}" if known < line else ""
        return InputError(
            f"{self._path}:{self._places.at(line)}: sentence {key[-1]!r} comes back{where}; the "
            "words of a sentence must be in rows that follow each other: sort the rows, or, if "
            "sentences are counted in each document, number them through or add a column doc_id"
        )

    def notes(self) -> Iterator[str]:
        """Yield a line about numbers that began again, if any did."""
        if self._restarts:
            yield (
                f"{self._path}: the numbers of {self._form.sentence!r} begin again "
                f"{quantity(self._restarts, 'time')}, each time with another sentence"
            )

    def _may_end_document(self, last: ConllSentence | None) -> bool:
        if self._form.document is not None or not self._counts_up or last is None:
            return False
        ends_with_mark = bool(last.words) and not any(map(str.isalnum, last.words[-1]))
        return ends_with_mark or len(last.words) >= _FEWEST_WORDS


def _last_number(name: str) -> int | None:
    numbers = _LAST_NUMBER.findall(name)
    return int(numbers[-1]) if numbers else None
