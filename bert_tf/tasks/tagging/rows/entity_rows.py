"""Rows with a text and its entities, as tools for annotation write them."""

from __future__ import annotations

import itertools
from typing import Any

from bert_tf.data.tables.cells import cell_fault, shortened, value_in_text
from bert_tf.tasks.tagging.rows.tagged_text import TaggedText

# Of doccano, Label Studio (a list of one), Prodigy, spaCy, Rasa and UIMA, and what transformers
# predicts.
_STARTS = ("start", "start_offset", "startOffset", "start_char", "begin")
_ENDS = ("end", "end_offset", "endOffset", "end_char")
_LABELS = (
    *("label", "labels", "type", "tag", "entity_type", "entity_group", "entity", "category"),
    *("label_", "entityType"),
)
_NOT_ACCEPTED = ("reject", "ignore")  # what Prodigy keeps of an annotator's answer


def entities_row(row: dict[str, Any], line: int, text_column: str, entities: str) -> TaggedText:
    """A text with its entities: a list, its text in JSON or Python, or nothing for none.

    Args:
        row: value by column.
        line: of the file.
        text_column, entities: names of columns.
    """
    if row.get("answer") in _NOT_ACCEPTED and "spans" in row:
        return TaggedText(line=line, fault=("annotation is not accepted", shortened(row["answer"])))
    fault = cell_fault(row, text_column, kind="text", allow_empty=False)
    if fault:
        return TaggedText(line=line, fault=fault)
    text = row[text_column]
    listed = row.get(entities)
    if isinstance(listed, str):
        listed = value_in_text(listed) if listed.strip() else []
    if listed is None:
        listed = []
    if isinstance(listed, dict) and _are_columns(listed):
        listed = [
            dict(zip(listed, entity, strict=True)) for entity in zip(*listed.values(), strict=True)
        ]
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
        start, end, label = (
            next((item[name] for name in names if item.get(name) is not None), None)
            for names in (_STARTS, _ENDS, _LABELS)
        )
        text = item.get("text")
    elif isinstance(item, list | tuple) and len(item) == 3:
        (start, end, label), text = item, None
    else:
        return None
    if isinstance(label, list) and len(label) == 1:
        label = label[0]
    start, end = _place(start), _place(end)
    if start is None or end is None:
        return None
    if not isinstance(label, str) or not label.strip():
        return None
    return start, end, label, text


def _place(value: Any) -> int | None:
    """A whole number, also as a float or as text."""
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _are_columns(value: dict[str, Any]) -> bool:
    """Whether it is how `datasets` stores a list of objects: a list of each of their values."""
    return (
        all(isinstance(each, list) for each in value.values())
        and len(set(map(len, value.values()))) == 1
    )
