"""Labels that are numbers: which can be used."""

from __future__ import annotations

import re

import numpy as np

from bert_tf.data.tables.cells import shortened
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.tables import Table

_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_REASON = "label is not a finite number"


def reject_other_labels(table: Table, column: str) -> Table:
    """Moves the rows whose label is no finite number of float32 to the rejects.

    Raises:
        RowsRejected: no row is left.
    """
    rejects = {
        index: Reject(table.source, line, _REASON, shortened(label))
        for index, (label, line) in enumerate(zip(table.columns[column], table.lines, strict=True))
        if not _is_number(label)
    }
    return table.rejecting(
        rejects, advice=f"column {column!r} is read; name another with --label-column"
    )


def _is_number(label: str) -> bool:
    if not _NUMBER.fullmatch(label):
        return False
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.float32(float(label))))
