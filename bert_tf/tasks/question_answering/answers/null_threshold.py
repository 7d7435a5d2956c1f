"""The null threshold, tuned on questions of which some have no answer.

The definitions are those of SQuAD 2.0's `evaluate-v2.0.py` (`find_best_thresh`,
`apply_no_ans_threshold`) with the null odds as probabilities of no answer, except that a threshold
where every question is left unanswered is below all of them: the script gives 0.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from bert_tf.tasks.question_answering.answers.metrics import percentage, question_scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanScores:
    """The span of each question that is its answer unless it has none.

    Attributes:
        is_text: bool [questions], whether there is such a span.
        exact_match, f1: float64 [questions], of that span, 0 to 1.
        null_odds: float64 [questions], null score minus best span's score.
        has_answer: bool [questions], by the gold answers.
    """

    is_text: np.ndarray
    exact_match: np.ndarray
    f1: np.ndarray
    null_odds: np.ndarray
    has_answer: np.ndarray

    @classmethod
    def of(cls, predicted: Mapping[str, Any], golds: Sequence[Sequence[str]]) -> Self:
        """Those of predictions, from `QuestionAnsweringTask.predict` or an exported model."""
        texts = list(_spans(predicted["predicted_nbest"]))
        exact, f1 = question_scores(texts, golds, version_2=True)
        return cls(
            is_text=np.array([bool(text) for text in texts]),
            exact_match=exact,
            f1=f1,
            null_odds=np.asarray(predicted["predicted_null_odds"], np.float64),
            has_answer=np.array([bool(listed) for listed in golds]),
        )

    def with_threshold(self, scores: np.ndarray, threshold: float) -> np.ndarray:
        """`exact_match` or `f1` where null odds above a threshold mean no answer."""
        return np.where(self.null_odds > threshold, ~self.has_answer, scores)


class BestThreshold(NamedTuple):
    """The null threshold that is best for a metric.

    Attributes:
        percentage: the metric.
        least: the least such threshold.
        between: one above it, at most halfway to the next null odds, so that rounding changes no
            decision.
    """

    percentage: float
    least: float
    between: float


def best_threshold(spans: SpanScores, scores: np.ndarray) -> BestThreshold:
    """Finds the threshold whose mean score is highest, of several the least.

    Args:
        spans: of all questions.
        scores: their `exact_match` or `f1`.
    """
    order = np.argsort(spans.null_odds, kind="stable")
    odds = spans.null_odds[order]
    gains = np.where(spans.has_answer, scores, -spans.is_text.astype(np.float64))[order]
    # Before the first question, when none is answered, and after each with different null odds.
    totals = np.count_nonzero(~spans.has_answer) + np.concatenate([[0.0], np.cumsum(gains)])
    can_end = np.concatenate([[True], odds[1:] != odds[:-1], [True]])
    best = int(np.argmax(np.where(can_end, totals, -np.inf)))
    beyond = np.concatenate([[odds[0] - 2.0], odds, [odds[-1] + 2.0]])
    return BestThreshold(
        percentage=100.0 * float(totals[best]) / len(odds),
        least=float(beyond[best]),
        between=float(beyond[best] + min((beyond[best + 1] - beyond[best]) / 2.0, 1.0)),
    )


def threshold_metrics(spans: SpanScores, threshold: float) -> dict[str, float]:
    """What another threshold would give: 0, and the best for each metric.

    Args:
        spans: of all questions.
        threshold: the one in use.
    """
    exact, f1 = (best_threshold(spans, scores) for scores in (spans.exact_match, spans.f1))
    return {
        "null_threshold": threshold,
        "exact_match_untuned": percentage(spans.with_threshold(spans.exact_match, 0.0)),
        "f1_untuned": percentage(spans.with_threshold(spans.f1, 0.0)),
        "best_exact": exact.percentage,
        "best_exact_thresh": exact.least,
        "best_f1": f1.percentage,
        "best_f1_thresh": f1.least,
    }


def _spans(nbest: Iterable[Any]) -> Iterable[str]:
    """The first span of each ranking, "" where a context has none."""
    for ranking in nbest:
        entries = json.loads(ranking) if isinstance(ranking, str) else ranking
        yield next((entry["text"] for entry in entries if entry["start"] is not None), "")
