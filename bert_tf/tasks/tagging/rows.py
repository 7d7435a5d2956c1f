"""Rows of tagged text in files.

| file | content |
|---|---|
| CoNLL columns | a word and its tag per line |
| a table with the columns `tokens` and `tags` | lists of words and of tags |
| a table with a word and its tag per row | the words of a sentence, which a column names |
| a table with the columns `text` and `entities` | a text and its `[{start, end, label}, …]` |
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.wording import listed, shortened
from bert_tf.data.tables.cells import (
    annotation_fault,
    cell_fault,
    check_columns,
    list_in_text,
    value_in_text,
    words_of,
)
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.conll import COLUMN_NUMBER, is_conll, read_conll_sentences
from bert_tf.data.tables.header_hints import check_is_no_other, export_hint
from bert_tf.data.tables.places import Places
from bert_tf.data.tables.rejects import Reject, column_is_empty, column_is_not_words
from bert_tf.data.tables.tables import TableBlock, read_table_blocks
from bert_tf.data.tables.value_forms import is_cut
from bert_tf.data.tables.word_blocks import TOKENS
from bert_tf.tasks.tagging.options import ENTITIES, LISTED_ENTITIES, TaggingConfig
from bert_tf.tasks.tagging.row_forms import (
    TableForm,
    TagColumns,
    TaggedText,
    row_of_words,
    sentence_row,
)
from bert_tf.tasks.tagging.word_rows import sentences_of_rows, with_sentences

# Keys of entities of doccano, Label Studio (where the label is a list of one), Prodigy, spaCy,
# Rasa, UIMA, and of the predictions of transformers
_STARTS = ("start", "start_offset", "startOffset", "start_char", "begin")
_ENDS = ("end", "end_offset", "endOffset", "end_char")
_LABELS = (
    *("label", "labels", "type", "tag", "entity_type", "entity_group", "entity", "category"),
    *("label_", "entityType"),
)
_TAGS = "tags"
_SPANS = "spans"  # Prodigy's entities
_MOST_DIGITS = 18  # of an offset written as text


class _Unusable(Exception):
    """A row cannot be used; the arguments are reason and detail."""


def _entities_row(row: dict[str, Any], line: int, form: TableForm) -> TaggedText:
    """Read a text with its entities: a list, the text of a list in JSON or Python, or nothing."""
    fault = annotation_fault(row, ())
    fault = fault or cell_fault(row, form.text, kind="text", allow_empty=False)
    if fault:
        raise _Unusable(*fault)
    text = row[form.text]
    entities = row.get(form.entities)
    if isinstance(entities, str):
        entities = value_in_text(entities) if entities.strip() else []
    if isinstance(entities, dict) and entities:
        entities = _objects(entities)
    if not isinstance(entities, list | None):
        raise _Unusable(f"column {form.entities!r} is not a list of entities", shortened(entities))
    spans = sorted({_span(item, text) for item in entities or ()})
    for span, next_span in itertools.pairwise(spans):
        _, end, _ = span
        next_start, _, _ = next_span
        if end > next_start:
            raise _Unusable("entities overlap", f"{span} and {next_span}")
    return TaggedText(
        line=line,
        text=text,
        has_words=False,
        starts=[start for start, _, _ in spans],
        ends=[end for _, end, _ in spans],
        tags=[label for _, _, label in spans],
        lines=[line] * len(spans),
    )


def _objects(columns: dict[Any, Any]) -> Any:
    """Return the objects that `datasets` stores as an object of lists; another object as it is."""
    lists = list(columns.values())
    for values in lists:
        if not isinstance(values, list) or len(values) != len(lists[0]):
            return columns
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


def _span(item: Any, text: str) -> tuple[int, int, str]:
    """Return start, end and label of an entity in a text."""
    start = end = label = expected = None
    if isinstance(item, dict):
        start = _first_value(item, _STARTS)
        end = _first_value(item, _ENDS)
        label = _first_value(item, _LABELS)
        expected = item.get("text")
    elif isinstance(item, list | tuple) and len(item) == 3:
        start, end, label = item
    if isinstance(label, list) and len(label) == 1:
        label = label[0]
    start = _place(start)
    end = _place(end)
    if start is None or end is None or not isinstance(label, str) or not label.strip():
        raise _Unusable("entity is not {start, end, label}", shortened(item))
    fault = _place_fault(text, start, end, expected)
    if fault is not None:
        reason, detail = fault
        unit = _other_unit(text, start, end, expected)
        if unit is not None:
            reason = f"{reason}, unless offsets count {unit}; count characters"
        raise _Unusable(reason, detail or shortened(item))
    return *_without_blanks(text, start, end), label


def _first_value(item: dict[str, Any], names: Iterable[str]) -> Any:
    """Return the value of the first key that has one; None if none has."""
    return next((item[name] for name in names if item.get(name) is not None), None)


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of an entity without the blanks around it, if whole words are left.

    Blanks around a part of a word are a sign of offsets that do not count characters.
    """
    inner = text[start:end]
    first = end - len(inner.lstrip())
    last = start + len(inner.rstrip())
    return (first, last) if _is_of_words(text, first, last) else (start, end)


def _place_fault(text: str, start: int, end: int, expected: Any) -> tuple[str, str] | None:
    """Return reason and detail if an entity cannot be at its offsets; None if it can."""
    if not 0 <= start < end <= len(text) or not text[start:end].strip():
        return "entity covers no text", ""
    if expected not in (None, text[start:end]):
        return "entity is not at its place", f"{expected!r}, where is {text[start:end]!r}"
    return None


# Units of offsets in other languages, their encodings, and the bytes of a unit: JavaScript, Java
# and C# have the first, Go and Rust the second.
_UNITS = (("UTF-16 units", "utf-16-le", 2), ("bytes of UTF-8", "utf-8", 1))


def _other_unit(text: str, start: int, end: int, expected: Any) -> str | None:
    """Return the unit by which offsets cover whole words, or the expected text; else None."""
    for name, encoding, size in _UNITS:
        encoded = text.encode(encoding, "surrogatepass")
        if not 0 <= start < end or size * end > len(encoded):
            continue
        try:
            first = len(encoded[: size * start].decode(encoding))
            last = len(encoded[: size * end].decode(encoding))
        except UnicodeDecodeError:  # inside a character
            continue
        if expected is None and _is_of_words(text, first, last):
            return name
        if expected is not None and text[first:last] == expected:
            return name
    return None


def _is_of_words(text: str, start: int, end: int) -> bool:
    return bool(text[start:end].strip()) and not is_cut(text, start, end)


def _place(value: Any) -> int | None:
    """Return a whole number, which may be written as float or text; None for other values."""
    if isinstance(value, str):
        digits = value.strip()
        return int(digits) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def table_form(path: str | Path, columns: TagColumns, block: TableBlock) -> TableForm:
    """Find the form of a table by the columns that options name, then by its first rows.

    Args:
        path: the table, for messages.
        columns: names from the options.
        block: its first rows.

    Raises:
        UsageError: the table has neither form, or a word per row and no column of sentences.
    """
    form = TableForm(
        tokens=columns.tokens or TOKENS,
        tags=columns.tags or _TAGS,
        text=columns.text,
        entities=_entities_column(columns, block),
    )
    form = dataclasses.replace(form, has_words=_has_words(path, columns, form, block))
    if not form.has_words:
        return form
    check_columns(path, block.header, block.columns, (form.tokens, form.tags))
    return with_sentences(path, columns, form, block)


def _entities_column(columns: TagColumns, block: TableBlock) -> str:
    if columns.entities != TaggingConfig.entities_column or columns.entities in block.columns:
        return columns.entities
    for name in (*ENTITIES, *LISTED_ENTITIES):
        if name in block.columns and (name == _SPANS or _has_spans(block, name)):
            return name
    return columns.entities


def _has_spans(block: TableBlock, column: str) -> bool:
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
    check_is_no_other(path)
    raise UsageError(
        f"{path}: has neither the columns {form.tokens!r} and {form.tags!r} (lists of words and "
        f"tags) nor {form.text!r} and {form.entities!r} (text and spans); it has "
        f"{listed(block.columns)}; {export_hint(block.columns)}name its columns by --tokens-column "
        "and --tag-column, or --text-column and --entities-column"
    )


def read_tagged_rows(
    path: str | Path,
    columns: TagColumns,
    dialect: TableDialect,
    console: Console | None,
    places: Places,
) -> Iterator[TaggedText]:
    """Yield the rows of a file, usable or not; it is CoNLL by its extension, or else a table.

    Args:
        path: the file.
        columns: names of its columns.
        dialect: how it is written.
        console: receives notes on how the rows are read; None for none.
        places: filled with the places of the rows.

    Raises:
        InputError, UsageError: see `read_tagged_texts`.
    """
    if is_conll(path):
        return _conll_rows(path, columns, dialect)
    return _table_rows(path, columns, dialect, console, places)


def _conll_rows(
    path: str | Path, columns: TagColumns, dialect: TableDialect
) -> Iterator[TaggedText]:
    if not dialect.has_header:
        raise UsageError(f"{path}: --no-header is for CSV and TSV; CoNLL files have no header")
    dialect.check_no_id_column(path, "sentences of CoNLL files have no columns")
    check_is_no_other(path)
    sentences = read_conll_sentences(
        path,
        dialect,
        word_column=_column_number("--tokens-column", columns.tokens),
        tag_column=_column_number("--tag-column", columns.tags),
    )
    yield from map(sentence_row, sentences)


def _column_number(flag: str, column: str | None) -> int | None:
    if column is None:
        return None
    if not COLUMN_NUMBER.fullmatch(column):
        raise UsageError(f"{flag} {column}: columns of CoNLL files are numbers, from 1")
    return int(column)


def _table_rows(
    path: str | Path,
    columns: TagColumns,
    dialect: TableDialect,
    console: Console | None,
    places: Places,
) -> Iterator[TaggedText]:
    named = (columns.tokens, columns.tags, columns.text, columns.entities, TOKENS, _TAGS)
    blocks = read_table_blocks(
        path, dialect=dialect, not_ids=set(filter(None, named)), console=console
    )
    # Blocks up to the first with a usable row, which shows the columns; before it are only rejects.
    first_blocks: list[TableBlock] = []
    form = None
    for block in blocks:
        first_blocks.append(block)
        if block.columns:
            form = table_form(path, columns, block)
            break
    has_word_rows = form is not None and form.has_word_rows
    # Where each row is a word, an id column that is found by its values does not name sentences.
    has_ids = dialect.id_column is not None or not has_word_rows
    blocks = _noting_places(itertools.chain(first_blocks, blocks), places, has_ids=has_ids)
    if form is not None and has_word_rows:
        yield from sentences_of_rows(path, blocks, form, console, places)
        return
    for line, row in itertools.chain.from_iterable(block.in_order() for block in blocks):
        if isinstance(row, Reject):
            yield TaggedText(line=line, fault=(row.reason, row.detail))
        elif form is not None:
            read = _words_row if form.has_words else _entities_row
            try:
                yield read(row, line, form)
            except _Unusable as error:
                yield TaggedText(line=line, fault=error.args)


def _noting_places(
    blocks: Iterable[TableBlock], places: Places, *, has_ids: bool
) -> Iterator[TableBlock]:
    """Note the places of rows while their blocks pass."""
    for block in blocks:
        places.row_of_line.update(block.places.row_of_line)
        if has_ids:
            places.id_of_line.update(block.places.id_of_line)
        yield block


def _words_row(row: dict[str, Any], line: int, form: TableForm) -> TaggedText:
    """Read a list of words with its list of tags."""
    words = _list_of_words(row, form.tokens)
    tags = _list_of_words(row, form.tags, are_tags=True)
    if len(words) != len(tags):
        counts = f"{len(words)} words, {len(tags)} tags"
        raise _Unusable("tags are not as many as words", counts)
    return row_of_words(line, words, tags, [line] * len(words))


def _list_of_words(row: dict[str, Any], column: str, *, are_tags: bool = False) -> list[str]:
    """Return the words or tags in a column of a row; raise `_Unusable` if it has no list."""
    value = row.get(column)
    if value is None:
        raise _Unusable(column_is_empty(column), "")
    words = words_of(_whole_numbers(value) if are_tags else value)
    if words is None:
        raise _Unusable(column_is_not_words(column), shortened(value))
    return words


def _whole_numbers(tags: Any) -> Any:
    """Parse a list of tags, with whole numbers for floats of NumPy's columns: `(1.0, 0.0)`."""
    values = list_in_text(tags) if isinstance(tags, str) else tags
    if not isinstance(values, list):
        return tags
    return [int(tag) if isinstance(tag, float) and tag.is_integer() else tag for tag in values]
