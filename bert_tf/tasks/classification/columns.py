"""Which columns of a table are likely the text and its label."""

from __future__ import annotations

from typing import Any

from bert_tf.data.tables.sketches import TableSketch
from bert_tf.tasks.tables.likely_columns import LABEL_NAMES, likely_labeled_texts


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """See `TaskDeclaration.columns`."""
    return likely_labeled_texts(
        table,
        "a label",
        names=LABEL_NAMES,
        fits=lambda each: each.is_label,
        rank=lambda each: each.distinct,
    )
