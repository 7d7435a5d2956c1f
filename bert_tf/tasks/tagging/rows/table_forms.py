"""What the rows of a table are: lists of words, words one by one, or texts with entities."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.data.tables.cells import (
    GAPS,
    cell_text,
    check_columns,
    export_hint,
    shortened,
    value_in_text,
)
from bert_tf.data.tables.rejects import Reject, column_is_empty
from bert_tf.data.tables.tables import TableBlock
from bert_tf.data.tables.word_blocks import TOKENS, are_single_words
from bert_tf.tasks.tagging.columns import ENTITIES, LISTED_ENTITIES
from bert_tf.tasks.tagging.options import TaggingConfig
from bert_tf.tasks.tagging.rows.tagged_text import TagColumns, TaggedText, row_of_words

_TAGS = "tags"
_SPANS = "spans"  # Prodigy's entities
_SENTENCE = re.compile(r"sent(ence)?[ _-]*(id|idx|index|no|num|number|nr)?[ #.:]*", re.IGNORECASE)
_MOST_SENTENCES = 0.75  # of the rows; more are no sentences


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableForm:
    """What the rows are, and the columns they have it in.

    Attributes:
        has_words: whether they have words with tags; otherwise texts with entities.
        tokens, tags, text, entities: names of columns.
        sentence: the column that says which sentence a row's word is of; None where rows are
            sentences.
    """

    has_words: bool
    tokens: str
    tags: str
    text: str
    entities: str
    sentence: str | None = None


def table_form(path: str | Path, columns: TagColumns, block: TableBlock) -> TableForm:
    """The form of a table, by the columns that were named and by its first rows.

    Args:
        path: of the table.
        columns: those named win over others that are there.
        block: the first rows.

    Raises:
        UsageError: it has neither form, or a word per row and no column of sentences.
    """
    form = TableForm(
        has_words=True,
        tokens=columns.tokens or TOKENS,
        tags=columns.tags or _TAGS,
        text=columns.text,
        entities=_entities_column(columns, block),
    )
    form = dataclasses.replace(form, has_words=_has_words(path, columns, form, block))
    if not form.has_words:
        return form
    check_columns(path, block.header, block.columns, (form.tokens, form.tags))
    values = [row.get(form.tokens) for row in block.rows]
    sentence = columns.sentence or _sentence_column(block)
    is_named = columns.sentence in block.columns and not any(map(_is_list, values))
    if not is_named and not are_single_words(values):
        return form
    if sentence is None:
        raise UsageError(
            f"{path}: most rows hold a single word in {form.tokens!r}, and would be sentences of "
            "their own; name the column that says which sentence it is of, --sentence-column NAME, "
            "or end the file's name in .conll if blank lines are between sentences"
        )
    check_columns(path, block.header, block.columns, (sentence,))
    if _sentences(block.rows, sentence) > max(_MOST_SENTENCES * len(block.rows), 2):
        raise UsageError(
            f"{path}: column {sentence!r} is another in nearly every row, so that each word would "
            "be a sentence; name the column of sentences by --sentence-column"
        )
    return dataclasses.replace(form, sentence=sentence)


def _entities_column(columns: TagColumns, block: TableBlock) -> str:
    """The column that is named, or the one of a usual name that holds entities."""
    if columns.entities != TaggingConfig.entities_column or columns.entities in block.columns:
        return columns.entities
    for name in (*ENTITIES, *LISTED_ENTITIES):
        if name in block.columns and (name == _SPANS or _has_spans(block, name)):
            return name
    return columns.entities


def _has_spans(block: TableBlock, column: str) -> bool:
    """Whether the first cell that is filled is a list of lists or objects."""
    cells = (row.get(column) for row in block.rows)
    parsed = (value_in_text(cell) if isinstance(cell, str) and cell else cell for cell in cells)
    first = next((cell for cell in parsed if cell not in (None, "", [])), None)
    return isinstance(first, list) and isinstance(first[0], list | tuple | dict)


def _has_words(path: str | Path, columns: TagColumns, form: TableForm, block: TableBlock) -> bool:
    has_entities = {form.text, form.entities}.issubset(block.columns)
    names_words = columns.tokens is not None or columns.tags is not None
    names_entities = columns.entities != TaggingConfig.entities_column
    if names_words and names_entities and has_entities:
        raise UsageError(
            f"{path}: --entities-column is for texts with entities, --tokens-column and "
            "--tag-column for lists of words; name the columns of one"
        )
    if names_words:
        return True
    if has_entities and (names_entities or form.tags not in block.columns):
        return False
    if form.tokens in block.columns:
        return True
    if form.text in block.columns:
        check_columns(path, block.header, block.columns, (form.entities,))
        return False
    available = ", ".join(shortened(name) for name in block.columns)
    raise UsageError(
        f"{path}: has neither the columns {form.tokens!r} and {form.tags!r} (lists of words and "
        f"tags) nor {form.text!r} and {form.entities!r} (text and spans); it has {available}; "
        f"{export_hint(block.columns)}name its columns by --tokens-column and --tag-column, or "
        "--text-column and --entities-column"
    )


def _is_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip().startswith("["))


def _sentence_column(block: TableBlock) -> str | None:
    return next((name for name in block.columns if _SENTENCE.fullmatch(name.strip())), None)


def _sentence_name(row: dict[str, Any], column: str) -> str:
    """Of the sentence that begins with a row; empty where the one before goes on."""
    name = cell_text(row.get(column)).strip()
    return "" if name.lower() in GAPS else name


def _sentences(rows: Iterable[dict[str, Any]], column: str) -> int:
    """How often the column changes; blank cells continue a sentence."""
    count, before = 0, ""
    for row in rows:
        value = _sentence_name(row, column)
        count += bool(value) and value != before
        before = value or before
    return count


def sentences_of_rows(
    path: str | Path, blocks: Iterable[TableBlock], form: TableForm, console: Console | None
) -> Iterator[TaggedText]:
    """The sentences of a table with a word per row: rows that follow one another.

    A row that cannot be used spoils its sentence.

    Args:
        path: of the table.
        blocks: all of its rows.
        form: the columns, that of sentences among them.
        console: where a line on the sentences goes.
    """
    assert form.sentence is not None
    if console is not None:
        console.info(
            f"{path}: a word per row; words with one {form.sentence!r} are a sentence "
            "(--sentence-column)"
        )
    words: list[str] = []
    tags: list[str] = []
    lines: list[int] = []
    fault: tuple[str, str] | None = None
    sentence = ""
    for line, row in _in_order(blocks):
        if isinstance(row, Reject):
            place = f"line {line}: {row.detail}" if row.detail else f"line {line}"
            fault = fault or (row.reason, place)
            lines.append(line)
            continue
        name = _sentence_name(row, form.sentence)
        if name and name != sentence:
            if lines:
                yield _sentence(words, tags, lines, fault)
            words, tags, lines, fault, sentence = [], [], [], None, name
        word, tag = (cell_text(row.get(column)).strip() for column in (form.tokens, form.tags))
        for column, text in ((form.tokens, word), (form.tags, tag)):
            if not text:
                fault = fault or (column_is_empty(column), f"line {line}")
        words.append(word)
        tags.append(tag)
        lines.append(line)
    if lines:
        yield _sentence(words, tags, lines, fault)


def _in_order(blocks: Iterable[TableBlock]) -> Iterator[tuple[int, dict[str, Any] | Reject]]:
    for block in blocks:
        rows: list[tuple[int, dict[str, Any] | Reject]] = [
            *zip(block.lines, block.rows, strict=True),
            *((reject.line, reject) for reject in block.rejects),
        ]
        yield from sorted(rows, key=lambda row: row[0])


def _sentence(
    words: list[str], tags: list[str], lines: list[int], fault: tuple[str, str] | None
) -> TaggedText:
    if fault is not None:
        return TaggedText(line=lines[0], fault=fault)
    return row_of_words(lines[0], words, tags, lines)
