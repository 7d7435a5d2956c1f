"""Which columns of a table are likely words and tags, or text and entities."""

from __future__ import annotations

from typing import Any

from bert_tf.data.tables.sketches import ColumnSketch, TableSketch

_TOKENS = ("tokens", "words", "token", "word")
_TAGS = ("tags", "ner_tags", "pos_tags", "labels", "tag", "ner_tag", "ner", "pos", "label")
_TEXT = ("text", "sentence")
ENTITIES = ("entities", "spans", "annotations", "ents")
LISTED_ENTITIES = ("label", "labels")
"""Entities of doccano and Label Studio; elsewhere tags of words."""


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """See `TaskDeclaration.columns`; CoNLL files have none with names."""
    tokens = table.find("tokens_column", names=_TOKENS, fits=_any, rank=None)
    entities = table.find("entities_column", names=ENTITIES, fits=_any, rank=None)
    if entities is None and tokens is None:
        entities = table.find("entities_column", names=LISTED_ENTITIES, fits=_is_list, rank=None)
    text = table.find("text_column", names=_TEXT, fits=_any, rank=None, taken=(entities,))
    if entities is not None and text is not None:
        return {"text_column": text, "entities_column": entities}
    if tokens is None:
        raise table.missing("tokens_column", "a list of words")
    tags = table.find("tag_column", names=_TAGS, fits=_any, rank=None, taken=(tokens,))
    if tags is None:
        raise table.missing("tag_column", "a list of tags")
    return {"tokens_column": tokens, "tag_column": tags}


def _is_list(column: ColumnSketch) -> bool:
    return column.kind == "list"


def _any(column: ColumnSketch) -> bool:
    return column.kind != "empty"
