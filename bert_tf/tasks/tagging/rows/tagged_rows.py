"""Rows of tagged text as files have them.

| file | what is read |
|---|---|
| CoNLL columns | a word and its tag per line |
| a table with the columns `tokens` and `tags` | lists of words and of tags |
| a table with the columns `text` and `entities` | a text and its `[{start, end, label}, …]` |
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.data.tables.cells import cell_fault, shortened, words_of
from bert_tf.data.tables.columns import check_columns
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.conll import is_conll, read_conll_sentences
from bert_tf.data.tables.reasons import column_is_empty, column_is_not_words
from bert_tf.data.tables.tables import TableBlock, read_table_blocks
from bert_tf.data.tables.word_blocks import COLUMN_NUMBER, TOKENS

_TAGS = "tags"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TagColumns:
    """Where a file has what; see `TaggingConfig`."""

    text: str
    tokens: str | None
    tags: str | None
    entities: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedText:
    """A row: a text with marks, which are its words or its entities.

    Attributes:
        line: of the file, counted from 1.
        text: words of a file that has words are joined by a space.
        has_words: whether the marks are all words of the text, with a tag each; otherwise they are
            entities with a label each, in order, and share no character.
        starts, ends: characters of each mark, the end exclusive.
        tags: of each mark.
        lines: of each mark.
        fault: why the row cannot be used, the reason and the detail; None if it can.
    """

    line: int
    text: str = ""
    has_words: bool = True
    starts: list[int] = dataclasses.field(default_factory=list)
    ends: list[int] = dataclasses.field(default_factory=list)
    tags: list[str] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)
    fault: tuple[str, str] | None = None


def read_tagged_rows(
    path: str | Path, columns: TagColumns, dialect: TableDialect, console: Console | None
) -> Iterator[TaggedText]:
    """Yields the rows of a file, CoNLL by the ending of its name and otherwise a table.

    Args:
        path: the file.
        columns: where it has what.
        dialect: encoding of the file, and whether a table has a header.
        console: where lines for the user go.

    Raises:
        InputError: the file is damaged.
        UsageError: it is missing or lacks a column.
    """
    if is_conll(path):
        return _conll_rows(path, columns, dialect)
    return _table_rows(path, columns, dialect, console)


def _conll_rows(
    path: str | Path, columns: TagColumns, dialect: TableDialect
) -> Iterator[TaggedText]:
    if not dialect.has_header:
        raise UsageError(f"{path}: --no-header is for CSV and TSV; CoNLL files have no header")
    sentences = read_conll_sentences(
        path,
        dialect,
        word_column=_column_number("--tokens-column", columns.tokens),
        tag_column=_column_number("--tag-column", columns.tags),
    )
    for sentence in sentences:
        if sentence.fault is not None:
            yield TaggedText(line=sentence.line, fault=sentence.fault)
        else:
            yield _row_of_words(sentence.line, sentence.words, sentence.tags, sentence.lines)


def _column_number(flag: str, column: str | None) -> int | None:
    if column is None:
        return None
    if not COLUMN_NUMBER.fullmatch(column):
        raise UsageError(f"{flag} {column}: columns of CoNLL files go by number, from 1")
    return int(column)


def _row_of_words(line: int, words: list[str], tags: list[str], lines: list[int]) -> TaggedText:
    lengths = np.array([len(word) for word in words], np.int64)
    starts = offsets_of(lengths + 1)[:-1]
    return TaggedText(
        line=line,
        text=" ".join(words),
        starts=starts.tolist(),
        ends=(starts + lengths).tolist(),
        tags=tags,
        lines=lines,
    )


def _table_rows(
    path: str | Path, columns: TagColumns, dialect: TableDialect, console: Console | None
) -> Iterator[TaggedText]:
    tokens, tags = columns.tokens or TOKENS, columns.tags or _TAGS
    has_words: bool | None = None
    for block in read_table_blocks(path, dialect=dialect, console=console):
        if has_words is None and block.columns:
            has_words = _has_words(path, columns, block)
        rows = [
            _words_row(row, line, tokens, tags)
            if has_words
            else _entities_row(row, line, columns.text, columns.entities)
            for row, line in zip(block.rows, block.lines, strict=True)
        ]
        rows += [
            TaggedText(line=reject.line, fault=(reject.reason, reject.detail))
            for reject in block.rejects
        ]
        yield from sorted(rows, key=lambda row: row.line)


def _has_words(path: str | Path, columns: TagColumns, block: TableBlock) -> bool:
    """Whether a table has words with tags, not texts with entities.

    Raises:
        UsageError: it has neither.
    """
    tokens, tags = columns.tokens or TOKENS, columns.tags or _TAGS
    if columns.tokens is not None or tokens in block.columns:
        check_columns(path, block.header, block.columns, (tokens, tags))
        return True
    if columns.text in block.columns:
        check_columns(path, block.header, block.columns, (columns.entities,))
        return False
    available = ", ".join(shortened(name) for name in block.columns)
    raise UsageError(
        f"{path}: has neither the columns {tokens!r} and {tags!r} (lists of words and tags) nor "
        f"{columns.text!r} and {columns.entities!r} (text and spans); it has {available}; name "
        "its columns by --tokens-column and --tag-column, or --text-column and --entities-column"
    )


def _words_row(row: dict[str, Any], line: int, tokens: str, tags: str) -> TaggedText:
    lists = []
    for name in (tokens, tags):
        values = row.get(name)
        if values is None:
            return TaggedText(line=line, fault=(column_is_empty(name), ""))
        found = words_of(values)
        if found is None:
            fault = column_is_not_words(name), shortened(values)
            return TaggedText(line=line, fault=fault)
        lists.append(found)
    words, labels = lists
    if len(words) != len(labels):
        fault = "tags are not as many as words", f"{len(words)} words, {len(labels)} tags"
        return TaggedText(line=line, fault=fault)
    return _row_of_words(line, words, labels, [line] * len(words))


def _entities_row(row: dict[str, Any], line: int, text_column: str, entities: str) -> TaggedText:
    fault = cell_fault(row, text_column, kind="text", allow_empty=False)
    if fault:
        return TaggedText(line=line, fault=fault)
    text = row[text_column]
    listed = row.get(entities)
    if isinstance(listed, str):
        listed = _parsed(listed) if listed.strip() else []
    if listed is None:
        listed = []
    if not isinstance(listed, list):
        return TaggedText(
            line=line, fault=(f"column {entities!r} is no list of entities", shortened(listed))
        )
    spans = []
    for item in listed:
        span = _span(item)
        if span is None:
            fault = "entity is not {start, end, label}", shortened(item)
            return TaggedText(line=line, fault=fault)
        start, end, label, expected = span
        if not 0 <= start < end <= len(text) or not text[start:end].strip():
            return TaggedText(line=line, fault=("entity covers no text", shortened(item)))
        if expected not in (None, text[start:end]):
            fault = "entity is not at its place", f"{expected!r}, where is {text[start:end]!r}"
            return TaggedText(line=line, fault=fault)
        spans.append((start, end, label))
    spans.sort()
    for one, other in itertools.pairwise(spans):
        if one[1] > other[0]:
            return TaggedText(line=line, fault=("entities overlap", f"{one} and {other}"))
    return TaggedText(
        line=line,
        text=text,
        has_words=False,
        starts=[start for start, _, _ in spans],
        ends=[end for _, end, _ in spans],
        tags=[label for _, _, label in spans],
        lines=[line] * len(spans),
    )


def _span(item: Any) -> tuple[int, int, str, Any] | None:
    """Start, end, label and, where it is given, the text of an entity."""
    if isinstance(item, dict):
        values = (item.get("start"), item.get("end"), item.get("label"), item.get("text"))
    elif isinstance(item, list) and len(item) == 3:
        values = (*item, None)
    else:
        return None
    start, end, label, text = values
    if type(start) is not int or type(end) is not int:
        return None
    if not isinstance(label, str) or not label.strip():
        return None
    return start, end, label, text


def _parsed(text: str) -> Any:
    """The value of JSON text, or the text where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
