"""Predictions compared with labeled rows: the same for a run and for an exported model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.tasks.base.prediction_rows import prediction_rows
from bert_tf.tasks.base.task import TaskResults
from bert_tf.tasks.tagging.metrics import TaggingScores
from bert_tf.tasks.tagging.options import TAGGING
from bert_tf.tasks.tagging.predictions import span_rows
from bert_tf.tasks.tagging.rows.gold_tags import gold_tags
from bert_tf.tasks.tagging.rows.tagged_texts import TaggedTexts
from bert_tf.tasks.tagging.rows.word_rows import TextWords
from bert_tf.tasks.tagging.schemes import OUTSIDE, code_tags, entity_spans


def tagging_results(source: TaggedTexts, predicted: dict[str, Any], scheme: str) -> TaskResults:
    """Metrics; line, text, gold and predicted entities of each row.

    A word of the file has the tag of the first of BERT's words in it, as in training, and O if the
    tokenizer keeps nothing of it.

    Args:
        source: labeled rows.
        predicted: columns of `prediction_columns`, or of an exported model.
        scheme: of the tags.
    """
    words, tags = _predicted_words(predicted["predicted_tags"])
    gold = gold_tags(source, words, scheme)
    numbers: dict[str, int] = {}
    spans = entity_spans(code_tags(gold.tags, scheme, numbers), gold.words.offsets)
    rows = zip(
        source.lines,
        source.texts,
        span_rows(gold.words, spans, list(numbers)),
        prediction_rows(TAGGING.predictions, predicted),
        strict=True,
    )
    scores = TaggingScores(gold.tags, gold.aligned(tags, OUTSIDE), gold.words.offsets, scheme)
    return TaskResults(
        metrics=scores.metrics(),
        predictions=[
            {"line": line, "text": text, "entities": entities, **cells}
            for line, text, entities, cells in rows
        ],
        report=scores.report(),
    )


def _predicted_words(column: Iterable[Any]) -> tuple[TextWords, list[str]]:
    """BERT's words and their tags from `predicted_tags`: lists, or JSON text of them."""
    rows = [json.loads(row) if isinstance(row, str) else row for row in column]
    words = TextWords(
        offsets=offsets_of(np.array([len(row) for row in rows], np.int64)),
        starts=np.array([word["start"] for row in rows for word in row], np.int64),
        ends=np.array([word["end"] for row in rows for word in row], np.int64),
    )
    return words, [word["tag"] for row in rows for word in row]
