"""The line on the rows of tables: how many are done, how fast, and how long the rest will take."""

from __future__ import annotations

from collections import Counter

from bert_tf.base.progress.advance import Advance
from bert_tf.base.wording import quantity, shown_duration
from pipeline.beam.progress import Progress


class RowsLine:
    """A `ProgressLine` on rows: those done of all, rows per second, padding and the time left.

    Rows that an earlier run finished are done, but do not count for the speed, nor does the time
    until the first rows are done, in which the model is loaded.

    Args:
        label: what is done to the rows.
        tables: number of tables; that of all rows is known when each is counted.
    """

    def __init__(self, *, label: str, tables: int):
        self._label = label
        self._tables = tables
        self._first: tuple[float, int] | None = None

    def __call__(self, done: Counter[int], seconds: float) -> Advance | None:
        """See `ProgressLine`."""
        new = done[Progress.ROWS]
        rows = new + done[Progress.EARLIER_ROWS]
        if not rows:
            return None
        if new and self._first is None:
            self._first = (seconds, new)
        is_counted = done[Progress.TABLES] >= self._tables
        total = max(done[Progress.TABLE_ROWS], rows)
        parts = [f"{rows:,} of {quantity(total, 'row')}" if is_counted else quantity(rows, "row")]
        speed = self._speed(new, seconds)
        if speed:
            parts.append(f"{speed:,.1f} rows/s")
        padded = done[Progress.PADDED_TOKENS]
        if padded:
            parts.append(f"{1 - done[Progress.TOKENS] / padded:.0%} padding")
        if speed and is_counted and total > rows:
            parts.append(f"{shown_duration((total - rows) / speed)} left")
        text = f"{self._label}: {', '.join(parts)}"
        return Advance(text, rows / total if is_counted else None, says_time_left=True)

    def _speed(self, rows: int, seconds: float) -> float:
        """Rows per second since the first were done; 0 where that is not known yet."""
        if self._first is None or seconds <= self._first[0]:
            return 0.0
        return (rows - self._first[1]) / (seconds - self._first[0])
