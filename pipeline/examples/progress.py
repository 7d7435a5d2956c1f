"""The progress of a local run: intermediate data and finished shards, as its workers report."""

from __future__ import annotations

from collections import Counter

from bert_tf.base.wording import quantity
from pipeline.beam.progress import Describe, Progress


def describe_examples(*, found: int, shards: int) -> Describe:
    """The progress line's text on intermediate data and finished shards.

    Args:
        found: shards that an interrupted run had finished.
        shards: number of shards in the end.
    """
    of_all = f"of {quantity(shards, 'shard')} finished"

    def describe(done: Counter[int]) -> str:
        megabytes = done[Progress.SPILLED_BYTES] / 1e6
        spilled = f"{megabytes:,.0f} MB of tokens and records, " if megabytes >= 1 else ""
        return f"{spilled}{found + done[Progress.SHARDS]} {of_all}"

    return describe
