"""Predictions compared with labeled rows: the same for a run and for an exported model."""

from __future__ import annotations

from typing import Any

from bert_tf.tasks.base.prediction_rows import prediction_rows
from bert_tf.tasks.base.task import TaskResults
from bert_tf.tasks.tagging.metrics import TaggingScores
from bert_tf.tasks.tagging.options import TAGGING
from bert_tf.tasks.tagging.predictions import span_rows
from bert_tf.tasks.tagging.rows.gold_tags import gold_tags
from bert_tf.tasks.tagging.rows.tagged_texts import TaggedTexts
from bert_tf.tasks.tagging.schemes import OUTSIDE, code_tags, entity_spans
from bert_tf.tasks.tagging.word_tags import predicted_words


def tagging_results(source: TaggedTexts, predicted: dict[str, Any], scheme: str) -> TaskResults:
    """Metrics; line, text, gold and predicted entities of each row.

    A word of the file has the tag of the first of BERT's words in it, as in training, and O if the
    tokenizer keeps nothing of it.

    Args:
        source: labeled rows.
        predicted: columns of `prediction_columns`, or of an exported model.
        scheme: of the tags.
    """
    words, tags = predicted_words(predicted["predicted_tags"])
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
