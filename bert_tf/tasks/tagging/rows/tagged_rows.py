"""Rows of tagged text as files have them.

| file | what is read |
|---|---|
| CoNLL columns | a word and its tag per line |
| a table with the columns `tokens` and `tags` | lists of words and of tags |
| a table with a word and its tag per row | the words of a sentence, which a column names |
| a table with the columns `text` and `entities` | a text and its `[{start, end, label}, …]` |
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.data.tables.cells import list_in_text, shortened, words_of
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.rejects import column_is_empty, column_is_not_words
from bert_tf.data.tables.tables import TableBlock, read_table_blocks
from bert_tf.data.tables.word_blocks import COLUMN_NUMBER, is_conll, read_conll_sentences
from bert_tf.tasks.tagging.rows.entity_rows import entities_row
from bert_tf.tasks.tagging.rows.table_forms import sentences_of_rows, table_form
from bert_tf.tasks.tagging.rows.tagged_text import TagColumns, TaggedText, row_of_words


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
            yield row_of_words(sentence.line, sentence.words, sentence.tags, sentence.lines)


def _column_number(flag: str, column: str | None) -> int | None:
    if column is None:
        return None
    if not COLUMN_NUMBER.fullmatch(column):
        raise UsageError(f"{flag} {column}: columns of CoNLL files go by number, from 1")
    return int(column)


def _table_rows(
    path: str | Path, columns: TagColumns, dialect: TableDialect, console: Console | None
) -> Iterator[TaggedText]:
    blocks = read_table_blocks(path, dialect=dialect, console=console)
    begin: list[TableBlock] = []  # rejects up to the first row that says which columns there are
    for block in blocks:
        begin.append(block)
        if block.columns:
            break
    form = table_form(path, columns, begin[-1]) if begin and begin[-1].columns else None
    blocks = itertools.chain(begin, blocks)
    if form is not None and form.sentence is not None:
        yield from sentences_of_rows(path, blocks, form, console)
        return
    for block in blocks:
        rows = [
            TaggedText(line=reject.line, fault=(reject.reason, reject.detail))
            for reject in block.rejects
        ]
        if form is not None:
            rows += [
                _words_row(row, line, form.tokens, form.tags)
                if form.has_words
                else entities_row(row, line, form.text, form.entities)
                for row, line in zip(block.rows, block.lines, strict=True)
            ]
        yield from sorted(rows, key=lambda row: row.line)


def _words_row(row: dict[str, Any], line: int, tokens: str, tags: str) -> TaggedText:
    lists = []
    for name in (tokens, tags):
        values = row.get(name)
        if values is None:
            return TaggedText(line=line, fault=(column_is_empty(name), ""))
        found = words_of(_whole_numbers(values) if name == tags else values)
        if found is None:
            fault = column_is_not_words(name), shortened(values)
            return TaggedText(line=line, fault=fault)
        lists.append(found)
    words, labels = lists
    if len(words) != len(labels):
        fault = "tags are not as many as words", f"{len(words)} words, {len(labels)} tags"
        return TaggedText(line=line, fault=fault)
    return row_of_words(line, words, labels, [line] * len(words))


def _whole_numbers(tags: Any) -> Any:
    """Tags whose numbers have become floats, as in NumPy's columns with gaps: `[1.0, 0.0]`."""
    listed = list_in_text(tags) if isinstance(tags, str) else tags
    if not isinstance(listed, list) or not any(isinstance(tag, float) for tag in listed):
        return tags
    return [int(tag) if isinstance(tag, float) and tag.is_integer() else tag for tag in listed]
