"""The progress of a local run: text, intermediate data and finished shards of its workers."""

from __future__ import annotations

from collections import Counter

from bert_tf.base.wording import quantity
from pipeline.beam.progress import Progress, ProgressLine, text_line


def examples_line(*, found: int, shards: int) -> ProgressLine:
    """The line on text that was read, intermediate data and finished shards.

    Args:
        found: shards that an interrupted run had finished.
        shards: number of shards in the end.
    """
    of_all = f"of {quantity(shards, 'shard')} finished"

    def line(done: Counter[int], seconds: float) -> str | None:
        text = text_line(done, seconds)
        if text is None:
            return None
        megabytes = done[Progress.SPILLED_BYTES] / 1e6
        spilled = f"{megabytes:,.0f} MB of tokens and records, " if megabytes >= 1 else ""
        return f"{text}; {spilled}{found + done[Progress.SHARDS]} {of_all}"

    return line
