"""Tokens picked from every row of a batch."""

from __future__ import annotations

from typing import Any

from keras import ops


def gather_positions(hidden: Any, positions: Any) -> Any:
    """Picks tokens of every row.

    Args:
        hidden: float [batch, length, width].
        positions: int [batch, number], each below length.

    Returns:
        float [batch, number, width].
    """
    batch, length, width = ops.shape(hidden)
    row_starts = ops.arange(batch, dtype="int32")[:, None] * length
    flat_positions = ops.reshape(ops.cast(positions, "int32") + row_starts, (-1,))
    gathered = ops.take(ops.reshape(hidden, (-1, width)), flat_positions, axis=0)
    return ops.reshape(gathered, (batch, ops.shape(positions)[1], width))
