"""Ceiling of tagging: entities that no model can find.

See `bert_tf.tasks.running.ceiling`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.base.arrays import flat_ranges
from bert_tf.tasks.base.ceiling import CERTAIN, Cause
from bert_tf.tasks.tagging.gold import gold_words

if TYPE_CHECKING:
    from bert_tf.tasks.base.task_data import TaskData
    from bert_tf.tasks.tagging.host import WordRows
    from bert_tf.tasks.tagging.tagged_texts import TaggedTexts


def gold_tag_logits(data: TaskData, labels: int) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    """Return a function from windows to logits that are certain of the tags.

    Args:
        data: rows with the target `tag`.
        labels: number of tags.

    Returns:
        A function from int [n] to `logits`, float32 [n, length, labels].
    """
    rows = data.rows
    tags = data.token_targets["tag"]

    def outputs(chosen: np.ndarray) -> dict[str, np.ndarray]:
        lengths = rows.lengths[chosen]
        logits = np.zeros((len(chosen), int(lengths.max()), labels), np.float32)
        windows = np.repeat(np.arange(len(chosen)), lengths)
        places = flat_ranges(np.zeros(len(chosen), np.int64), lengths)
        of_tokens = tags[flat_ranges(rows.offsets[chosen], lengths)]
        logits[windows, places, of_tokens] = CERTAIN
        return {"logits": logits}

    return outputs


def entity_causes(data: TaskData, scheme: str) -> Iterator[Cause]:
    """Yield the reason why entities of raw texts cannot be predicted where they are marked.

    Rows of words have no such reason: words without a token do not count in any measure.

    Args:
        data: the rows.
        scheme: scheme of the tags.
    """
    source: TaggedTexts = data.source
    if source.has_words:
        return
    encoded: WordRows = data.details
    gold = gold_words(source, encoded.words, scheme)
    spans = gold.spans(scheme, {})
    owners = gold.words.owners[spans.first]
    starts = gold.words.starts[spans.first]
    ends = gold.words.ends[spans.last - 1]
    whole = set(zip(owners.tolist(), starts.tolist(), ends.tolist(), strict=True))
    marks = zip(source.owners.tolist(), source.starts.tolist(), source.ends.tolist(), strict=True)
    yield Cause(
        count=sum(mark not in whole for mark in marks),
        total=len(source.tags),
        text="is not made of whole words",
        remedy="correct the entities' starts and ends (do they count bytes, or UTF-16?), or mark "
        "whole words",
        noun="entity",
        plural="entities",
    )
