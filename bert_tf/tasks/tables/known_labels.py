"""Rows with labels that a model does not know."""

from __future__ import annotations

from collections.abc import Sequence

from bert_tf.base.console import Console
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.tables import Table
from bert_tf.tasks.tables.labels import LabelRows, unknown_labels


def reject_unknown_labels(
    table: Table, labels: Sequence[Sequence[str]], known: Sequence[str], console: Console
) -> Table:
    """Moves the rows with a label that a model does not know to the rejects, and warns of those.

    Args:
        table: the rows.
        labels: of each row.
        known: the model's labels.
        console: where the warnings go.

    Raises:
        RowsRejected: no row is left.
    """
    names = set(known)
    unknown = {
        index: [label for label in row if label not in names] for index, row in enumerate(labels)
    }
    rejects = {
        index: Reject(
            table.source,
            table.lines[index],
            "label is not one the model knows",
            ", ".join(map(repr, row)),
        )
        for index, row in unknown.items()
        if row
    }
    if not rejects:
        return table
    pairs = [(label, table.lines[index]) for index, row in unknown.items() for label in row]
    rows = LabelRows(table.source, [label for label, _ in pairs], [line for _, line in pairs])
    lines = list(unknown_labels(rows, known))
    if len(rejects) < len(table):
        for text in lines:
            console.warn(text)
    return table.rejecting(rejects, advice=lines[0].removeprefix(f"{table.source}: "))
