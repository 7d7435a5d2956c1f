"""Cells with any number of labels: lists, or texts in which a separator is between labels."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bert_tf.base.errors import InputError
from bert_tf.data.tables.cells import cell_text, shortened
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.tables import Table

_REASON = "label is neither a list nor a text of labels"


def labels_of_cells(cells: Sequence[str], separator: str) -> list[tuple[str, ...]]:
    """The labels of each cell, each label once, in the order of the cell.

    Args:
        cells: JSON lists of texts, numbers and truth values, or texts: blanks around their labels
            and empty parts are dropped.
        separator: of texts.
    """
    return [_labels(cell, separator) or () for cell in cells]


def reject_other_cells(table: Table, column: str, separator: str) -> Table:
    """Moves the rows whose cell is a JSON list of something else than labels to the rejects.

    Raises:
        InputError: no row is left.
    """
    rejects = {
        index: Reject(table.source, line, _REASON, shortened(cell))
        for index, (cell, line) in enumerate(zip(table.columns[column], table.lines, strict=True))
        if _labels(cell, separator) is None
    }
    if rejects and len(rejects) == len(table):
        raise InputError(
            f"{table.source}: column {column!r} holds no labels in any row; the first: "
            f"{next(iter(rejects.values()))}; name the column with --label-column"
        )
    return table.rejecting(rejects) if rejects else table


def _labels(cell: str, separator: str) -> tuple[str, ...] | None:
    """None for a list of something else."""
    listed = _json_list(cell)
    if listed is None:
        parts = (part.strip() for part in cell.split(separator))
        return tuple(dict.fromkeys(part for part in parts if part))
    if not all(isinstance(item, str | int | float) for item in listed):
        return None
    labels = tuple(dict.fromkeys(cell_text(item) for item in listed))
    return labels if all(label.strip() for label in labels) else None


def _json_list(cell: str) -> list | None:
    if not cell.startswith("["):
        return None
    try:
        value = json.loads(cell, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None
