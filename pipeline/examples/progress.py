"""The progress of a local run: text, intermediate data and finished shards of its workers."""

from __future__ import annotations

from collections import Counter

from bert_tf.base.console import Advance
from bert_tf.base.wording import quantity
from pipeline.beam.progress import Progress, ProgressLine, text_line


def examples_line(*, found: int, shards: int) -> ProgressLine:
    """The line on text that was read, intermediate data and finished shards.

    Args:
        found: shards that an interrupted run had finished.
        shards: number of shards in the end.
    """
    of_all = f"of {quantity(shards, 'shard')} finished"

    def line(done: Counter[int], seconds: float) -> Advance | None:
        text = text_line(done, seconds)
        if text is None:
            return None
        megabytes = done[Progress.SPILLED_BYTES] / 1e6
        spilled = f"{megabytes:,.0f} MB of tokens and records, " if megabytes >= 1 else ""
        finished = found + done[Progress.SHARDS]
        fraction = finished / shards if done[Progress.SHARDS] else text.fraction
        return Advance(f"{text.text}; {spilled}{finished} {of_all}", fraction)

    return line
