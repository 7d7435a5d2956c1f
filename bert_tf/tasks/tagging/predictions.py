"""Predicted tags of words as the columns that an exported model has; `tag_graph` in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.tasks.tagging.rows.word_rows import TextWords
from bert_tf.tasks.tagging.schemes import Spans, code_tags, entity_spans

_PROBABILITY_DIGITS = 6


def prediction_columns(
    texts: Sequence[str],
    words: TextWords,
    tags: list[str],
    probabilities: np.ndarray,
    scheme: str,
) -> dict[str, Any]:
    """Entities, tags and the mean probability of each text.

    Args:
        texts: as given.
        words: BERT's words of the texts.
        tags: of each word.
        probabilities: float [words], of each word's tag.
        scheme: of the tags.

    Returns:
        `predicted_entities`: of each text a list of objects with `start` and `end` (characters),
        `label`, `text` and `score`, the mean probability of the tags of its words.
        `predicted_tags`: of each text a list of objects with `start`, `end` and `tag`.
        `mean_score`: float32 [texts], the mean probability of its tags; 0 without words.
    """
    numbers: dict[str, int] = {}
    spans = entity_spans(code_tags(tags, scheme, numbers), words.offsets)
    sums = np.concatenate([[0.0], np.cumsum(probabilities, dtype=np.float64)])
    entities = _entities(texts, words, spans, list(numbers), sums)
    counts = np.diff(words.offsets)
    totals = sums[words.offsets[1:]] - sums[words.offsets[:-1]]
    listed = [
        {"start": start, "end": end, "tag": tag}
        for start, end, tag in zip(words.starts.tolist(), words.ends.tolist(), tags, strict=True)
    ]
    bounds = words.offsets.tolist()
    return {
        "predicted_entities": entities,
        "predicted_tags": [listed[begin:end] for begin, end in itertools.pairwise(bounds)],
        "mean_score": (totals / np.maximum(counts, 1)).astype(np.float32),
    }


def span_rows(words: TextWords, spans: Spans, names: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Entities of each text with their characters and labels.

    Args:
        words: of all texts.
        spans: entities over those words.
        names: of their types.
    """
    rows: list[list[dict[str, Any]]] = [[] for _ in range(len(words.offsets) - 1)]
    owners = np.searchsorted(words.offsets, spans.first, side="right") - 1
    columns = (owners, words.starts[spans.first], words.ends[spans.last - 1], spans.kinds)
    for owner, start, end, kind in zip(*(column.tolist() for column in columns), strict=True):
        rows[owner].append({"start": start, "end": end, "label": names[kind]})
    return rows


def _entities(
    texts: Sequence[str], words: TextWords, spans: Spans, names: Sequence[str], sums: np.ndarray
) -> list[list[dict[str, Any]]]:
    means = ((sums[spans.last] - sums[spans.first]) / (spans.last - spans.first)).tolist()
    rows = span_rows(words, spans, names)
    score = iter(means)
    for text, row in zip(texts, rows, strict=True):
        for entity in row:
            entity["text"] = text[entity["start"] : entity["end"]]
            entity["score"] = round(next(score), _PROBABILITY_DIGITS)
    return rows
