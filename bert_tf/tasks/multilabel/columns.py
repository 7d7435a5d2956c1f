"""Which columns of a table are likely the text and its labels."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.data.tables.sketches import TableSketch
from bert_tf.tasks.tables.likely_columns import likely_labeled_texts, likely_texts

_NAMES = ("labels", "label", "tags", "topics", "genres", "categories", "classes")


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """See `TaskDeclaration.columns`; what separates the labels of a text is found too.

    Several columns of zeros and ones are those of a label each.
    """
    given = table.given.get("label_column")
    if given is not None:
        columns = list(given)
    elif not any(each.is_label_list for each in table.columns):
        columns = [each.name for each in table.columns if each.binary]
    else:
        columns = []
    if len(columns) > 1:
        return {**likely_texts(table, taken=tuple(columns)), "label_column": columns}
    if given is not None:
        table = dataclasses.replace(table, given={**table.given, "label_column": columns[0]})
    settings = likely_labeled_texts(
        table,
        "a list of labels",
        names=_NAMES,
        fits=lambda each: each.is_label_list,
        rank=lambda each: each.distinct,
    )
    separators = {each.name: each.separator for each in table.columns}
    separator = separators.get(settings["label_column"])
    if separator is not None:
        settings["label_separator"] = separator
    return settings
