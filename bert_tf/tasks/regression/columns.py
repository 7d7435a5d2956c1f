"""Which columns of a table are likely the text and its number."""

from __future__ import annotations

from typing import Any

from bert_tf.data.tables.sketches import TableSketch
from bert_tf.tasks.tables.likely_columns import likely_labeled_texts

NUMBER_NAMES = ("label", "score", "similarity", "target", "rating", "value", "y")


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """See `TaskDeclaration.columns`."""
    return likely_labeled_texts(
        table,
        "a number to predict",
        names=NUMBER_NAMES,
        fits=lambda each: each.is_quantity,
        rank=lambda each: -each.distinct,
    )
