"""Rows that are lists of words, in blocks: sentences of CoNLL files, and tables with words."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence

from bert_tf.base.console import Console
from bert_tf.base.errors import Fault
from bert_tf.base.wording import shortened
from bert_tf.data.tables.cells import cell_text, text_fault_of_words, words_of
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.conll import (
    COLUMN_NUMBER,
    ConllSentence,
    is_conll,
    read_conll_sentences,
)
from bert_tf.data.tables.formats.delimited import ParsedRow
from bert_tf.data.tables.rejects import Reject, column_is_empty, column_is_not_words
from bert_tf.data.tables.tables import TableBlock, blocks_of_rows, read_table_blocks
from bert_tf.data.tables.text_files import Opener, open_local

TOKENS = "tokens"  # column of words where none is named, and always of CoNLL's sentences
# A column has a word per row if nearly all of its cells, and so many, are single words.
_SINGLE_WORDS = 0.8
_LEAST_ROWS = 3


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
        column: column of the words. A cell is a list, its JSON text, or words with blanks between
            them. In CoNLL files the column is a number, from 1, or any other name for the usual
            one.
        dialect: how the file is written.
        block_rows: rows read at once, rejected ones included.
        max_rows: read only the first rows, rejected ones included (0: all).
        as_lines: whether `raw_rows` of CoNLL have the form that `with_tags` takes; else they are
            JSON objects.
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
    """Whether nearly all cells have one word, so that a row is a word and not a sentence."""
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
    for sentence in sentences:
        fault = sentence.fault or text_fault_of_words(" ".join(sentence.words))
        if fault is not None:
            yield sentence.line, "", Reject(path, sentence.line, *fault)
            continue
        row = {TOKENS: sentence.words}
        raw = _pieces(sentence) if as_lines else json.dumps(row, ensure_ascii=False)
        yield sentence.line, raw, row


def _pieces(sentence: ConllSentence) -> str:
    """Write a sentence as a JSON list: its source, cut at each place where a tag is to be added."""
    pieces = [""]
    word_lines = set(sentence.lines)
    for number, line in enumerate(sentence.source, start=sentence.first_line):
        if number not in word_lines:
            pieces[-1] += line
            continue
        text = line.rstrip("\r\n")
        pieces[-1] += text + sentence.separator
        pieces.append(line[len(text) :])
    pieces[-1] = pieces[-1].removesuffix("\n")
    return json.dumps(pieces, ensure_ascii=False)
