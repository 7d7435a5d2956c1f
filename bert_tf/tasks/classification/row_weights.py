"""The column of row weights: which of its values can be used."""

from __future__ import annotations

import math

from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.tables import Table

_REASON = "weight is not a number from 0"


def rejecting_bad_weights(table: Table, column: str) -> Table:
    """The table without rows whose weight is no finite number, or a negative one.

    Raises:
        RowsRejected: no row is left.
    """
    rejects = {
        index: Reject(table.source, line, _REASON, repr(text))
        for index, (text, line) in enumerate(zip(table.columns[column], table.lines, strict=True))
        if not _is_weight(text)
    }
    return table.rejecting(rejects, advice=f"is {column!r} the column of weights?")


def _is_weight(text: str) -> bool:
    try:
        return 0 <= float(text) < math.inf
    except ValueError:
        return False
