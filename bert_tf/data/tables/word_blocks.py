"""Rows that are lists of words, in blocks: sentences of CoNLL files, and tables with words."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Sequence

from bert_tf.base.console import Console
from bert_tf.data.tables.cells import cell_text, shortened, text_fault_of_words, words_of
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.conll import ConllSentence, is_conll, read_conll_sentences
from bert_tf.data.tables.reasons import column_is_empty, column_is_not_words
from bert_tf.data.tables.rejects import Reject, RejectTally, nothing_usable
from bert_tf.data.tables.tables import TableBlock, read_table_blocks
from bert_tf.data.tables.text_files import Opener, open_local

TOKENS = "tokens"
"""The column of words where none is named; that of CoNLL's sentences is always called so."""
COLUMN_NUMBER = re.compile(r"[1-9]\d{0,5}", re.ASCII)
"""How columns of CoNLL files are named."""
_SINGLE_WORDS, _LEAST_ROWS = 0.8, 3


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
    """Reads the rows of a file in blocks, so that memory does not grow with it.

    Of CoNLL the rows have the one column `tokens`.

    Args:
        path: CoNLL by the ending of its name, otherwise a table.
        column: of the words: a list, its JSON text, or words with blanks between them. In CoNLL
            files a number, from 1; any other name means the usual column there.
        dialect, block_rows, max_rows, console, opener: as of `read_table_blocks`.
        as_lines: what `raw_rows` are of CoNLL: whether what `with_tags` takes, otherwise JSON.

    Raises:
        InputError, UsageError: as `read_table_blocks`.
    """
    if is_conll(path):
        number = int(column) if COLUMN_NUMBER.fullmatch(column) else None
        sentences = read_conll_sentences(
            path, dialect, word_column=number, has_tags=False, opener=opener
        )
        yield from _conll_blocks(path, sentences, block_rows, max_rows, as_lines=as_lines)
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
        yield _usable(path, block, column)


def row_words(block: TableBlock, column: str) -> list[list[str]]:
    """The words of each row of a block of `read_word_blocks`."""
    return [words_of(row[column]) or [] for row in block.rows]


def are_single_words(values: Sequence[object]) -> bool:
    """Whether the cells of a column of words are texts of mostly one word, not lists."""
    filled = [value for value in values if value not in (None, "")]
    single = sum(
        not isinstance(value, list)
        and len(words := cell_text(value).split()) == 1
        and not words[0].startswith("[")
        for value in filled
    )
    return len(filled) >= _LEAST_ROWS and single >= _SINGLE_WORDS * len(filled)


def with_tags(raw: str, tags: Sequence[str]) -> str:
    """The lines of a sentence with a column more, all else as it is, without the last line end.

    Args:
        raw: as of `read_word_blocks` with `as_lines`.
        tags: of each word.
    """
    pieces = json.loads(raw)
    ends = itertools.chain(tags, [""])
    return "".join(itertools.chain.from_iterable(zip(pieces, ends, strict=True)))


def tag_separator(raw: str) -> str:
    """What is between the columns of such a sentence: a tab or a blank."""
    separator: str = json.loads(raw)[0][-1]
    return separator


def _usable(path: str, block: TableBlock, column: str) -> TableBlock:
    """A table's block without rows that have no words."""
    faults: dict[int, Reject] = {}
    for index, row in enumerate(block.rows):
        fault = _words_fault(row.get(column), column)
        if fault is not None:
            faults[index] = Reject(path, block.lines[index], *fault)
    if not faults:
        return block
    kept = [index for index in range(len(block.rows)) if index not in faults]
    return dataclasses.replace(
        block,
        rows=[block.rows[index] for index in kept],
        raw_rows=[block.raw_rows[index] for index in kept],
        lines=[block.lines[index] for index in kept],
        rejects=[*block.rejects, *faults.values()],
    )


def _words_fault(value: object, column: str) -> tuple[str, str] | None:
    if value is None:
        return column_is_empty(column), ""
    words = words_of(value)
    if words is None:
        return column_is_not_words(column), shortened(value)
    return text_fault_of_words(" ".join(words))


def _conll_blocks(
    path: str,
    sentences: Iterator[ConllSentence],
    block_rows: int,
    max_rows: int,
    *,
    as_lines: bool,
) -> Iterator[TableBlock]:
    tally = RejectTally()
    is_usable = False
    limited = itertools.islice(sentences, max_rows or None)
    while rows := list(itertools.islice(limited, block_rows)):
        block = TableBlock(
            header=None, columns=(TOKENS,), rows=[], raw_rows=[], lines=[], rejects=[]
        )
        for row in rows:
            fault = row.fault or text_fault_of_words(" ".join(row.words))
            if fault is not None:
                block.rejects.append(Reject(path, row.line, *fault))
                continue
            content = {TOKENS: row.words}
            block.rows.append(content)
            block.raw_rows.append(
                _pieces(row) if as_lines else json.dumps(content, ensure_ascii=False)
            )
            block.lines.append(row.line)
        is_usable = is_usable or bool(block.rows)
        tally.add(block.rejects)
        yield block
    if not is_usable:
        raise nothing_usable(path, tally, noun="sentence")


def _pieces(sentence: ConllSentence) -> str:
    """The text of a sentence as a JSON list, cut where the tags of its words go."""
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
