"""Predictions compared with gold answers, and what is tuned on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bert_tf.tasks.base.prediction_rows import prediction_rows
from bert_tf.tasks.base.task import TaskResults
from bert_tf.tasks.question_answering.answers.metrics import answer_metrics
from bert_tf.tasks.question_answering.answers.null_threshold import (
    SpanScores,
    best_threshold,
    threshold_metrics,
)
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING
from bert_tf.tasks.question_answering.rows.questions import Questions


def question_results(
    source: Questions, predicted: Mapping[str, Any], *, null_threshold: float | None
) -> TaskResults:
    """Metrics, and a prediction for each question.

    Args:
        source: the questions.
        predicted: columns of predictions, of `QuestionAnsweringTask.predict` or an exported model.
        null_threshold: the model's; None if it leaves no question unanswered.
    """
    golds = source.golds
    metrics = answer_metrics(predicted["predicted_answer"], golds, version_2=not all(golds))
    cells = prediction_rows(QUESTION_ANSWERING.predictions, predicted)
    if null_threshold is not None and not all(golds):
        metrics |= threshold_metrics(SpanScores.of(predicted, golds), null_threshold)
    has_lines = len(source.lines) == 1 or len(set(source.lines)) > 1  # JSON may be one line
    return TaskResults(
        metrics=metrics,
        predictions=[
            {"id": identity, **({"line": line} if has_lines else {}), "answers": gold, **row}
            for identity, line, gold, row in zip(
                source.ids, source.lines, golds, cells, strict=True
            )
        ],
    )


def can_tune(source: Questions) -> bool:
    """Whether questions can tune a null threshold: if some have an answer and some have none."""
    has_answer = [bool(listed) for listed in source.answers]
    return any(has_answer) and not all(has_answer)


def how_tuned(source: Questions) -> str:
    """What becomes of the null threshold on these evaluation questions, for the user."""
    if can_tune(source):
        return "tuned for F1 on the evaluation rows after every epoch"
    return "0, since tuning needs evaluation questions both with and without an answer"


def tuned_threshold(source: Questions, predicted: Mapping[str, Any]) -> float:
    """The null threshold with the best F1.

    Args:
        source: the questions, of both kinds.
        predicted: as of `question_results`; what they make of the threshold does not matter.
    """
    spans = SpanScores.of(predicted, source.golds)
    return best_threshold(spans, spans.f1).between
