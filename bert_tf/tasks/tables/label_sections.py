"""What the pages of tasks with labels have in common: measures of each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.tasks.base.report_sections import MOST_ROWS, CellKind, TableSection

_MEASURES = ("precision", "recall", "f1")


def label_section(
    details: Mapping[str, Any],
    *,
    counted: str = "rows",
    more: Mapping[str, tuple[CellKind, Sequence[Any]]] | None = None,
) -> TableSection:
    """Precision, recall, F1 and number of rows of each label, of many the most frequent ones.

    Args:
        details: the report's of the task, with `labels` as `LabelMeasures.details` has them.
        counted: what has a label.
        more: further columns, by name, with their kind and a cell for each of these labels.
    """
    added = more or {}
    labels = details["labels"]
    order = sorted(range(len(labels)), key=lambda i: -list(labels.values())[i]["support"])
    names, measured = list(labels), list(labels.values())
    shown = sorted(order[:MOST_ROWS])
    left = len(labels) - len(shown)
    return TableSection(
        title="Labels",
        columns=(
            ("label", "text"),
            (counted, "count"),
            *((name, "fraction") for name in _MEASURES),
            *((name, kind) for name, (kind, _) in added.items()),
        ),
        rows=[
            [
                names[number],
                measured[number]["support"],
                *(measured[number][name] for name in _MEASURES),
                *(cells[number] for _, cells in added.values()),
            ]
            for number in shown
        ],
        note=f"The most frequent ones; {left:,} more are in metrics.json." if left else "",
    )
