"""Exact match and F1 of answers, 0 to 100, by the definitions of the official SQuAD scripts.

Version 1.1: Rajpurkar et al. 2016 (arXiv 1606.05250); version 2.0, with questions that have no
answer: Rajpurkar et al. 2018 (arXiv 1806.03822). The null threshold is tuned like
`evaluate-v2.0.py` does with null odds. One difference: if leaving every question unanswered is
best, the threshold is below all null odds, where the script gives 0.
"""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from bert_tf.base.wording import quantity
from bert_tf.tasks.base.prediction_rows import TaskResults, prediction_rows
from bert_tf.tasks.base.standard_errors import error_of_mean
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING
from bert_tf.tasks.question_answering.rows import Questions, normalize_answer

_PERCENT = 100.0
_MARGIN = 1.0  # of null odds: most distance of a tuned threshold from the odds of a question
_NAMES = ("exact_match", "f1")


def exact_match(predicted: str, gold: str) -> float:
    """Return 1 if both texts are equal once normalized, else 0."""
    return float(normalize_answer(predicted) == normalize_answer(gold))


def token_f1(predicted: str, gold: str, *, version_2: bool) -> float:
    """Compute F1 of the words of two answers.

    Args:
        predicted, gold: texts.
        version_2: whether two answers without words are equal, as in version 2.0: F1 is then 1; in
            version 1.1 it is 0.
    """
    predicted_words = normalize_answer(predicted).split()
    gold_words = normalize_answer(gold).split()
    if version_2 and not (predicted_words and gold_words):
        return float(predicted_words == gold_words)
    common = collections.Counter(predicted_words) & collections.Counter(gold_words)
    shared = sum(common.values())
    if shared == 0:
        return 0.0
    precision = shared / len(predicted_words)
    recall = shared / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def question_scores(
    predicted: Sequence[str], golds: Sequence[Sequence[str]], *, version_2: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Compute exact match and F1 of each answer, the best over its gold answers.

    Args:
        predicted: texts [questions]; no answer is "".
        golds: texts of each question; no answer is an empty sequence.
        version_2: whether questions may have no answer.

    Returns:
        Exact match and F1, float64 [questions] each, 0 to 1.
    """
    exact: list[float] = []
    f1: list[float] = []
    for answer, texts in zip(predicted, golds, strict=True):
        candidates = list(texts)
        if version_2:
            candidates = [gold for gold in texts if normalize_answer(gold)]
        candidates = candidates or [""]
        exact.append(max(exact_match(answer, gold) for gold in candidates))
        f1.append(max(token_f1(answer, gold, version_2=version_2) for gold in candidates))
    return np.array(exact), np.array(f1)


def answer_metrics(
    predicted: Sequence[str], golds: Sequence[Sequence[str]], *, version_2: bool
) -> dict[str, float]:
    """Average `question_scores`, 0 to 100.

    Version 2 adds `…_answerable` and `…_unanswerable` (`HasAns`, `NoAns`) if there are such
    questions.

    Args:
        predicted, golds, version_2: see `question_scores`.
    """
    return _means(question_scores(predicted, golds, version_2=version_2), golds, version_2)


def _means(
    arrays: tuple[np.ndarray, np.ndarray], golds: Sequence[Sequence[str]], version_2: bool
) -> dict[str, float]:
    """Average the results of `question_scores` over all questions, and over each kind of them."""
    scores = dict(zip(_NAMES, arrays, strict=True))
    metrics = {name: percentage(values) for name, values in scores.items()}
    if version_2:
        has_answer = np.array([bool(listed) for listed in golds])
        for kind, chosen in (("answerable", has_answer), ("unanswerable", ~has_answer)):
            if chosen.any():
                for name, values in scores.items():
                    metrics[f"{name}_{kind}"] = percentage(values[chosen])
    return metrics


def percentage(values: np.ndarray) -> float:
    """Return the mean of values from 0 to 1, in percent."""
    return _PERCENT * float(np.mean(values))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanScores:
    """The best span of each question, ignoring the null threshold; all [questions].

    Attributes:
        is_text: bool, whether there is such a span.
        exact_match, f1: float64, of that span, 0 to 1.
        null_odds: float64, null score minus the score of that span.
        has_answer: bool, whether the question has a gold answer.
    """

    is_text: np.ndarray
    exact_match: np.ndarray
    f1: np.ndarray
    null_odds: np.ndarray
    has_answer: np.ndarray

    @classmethod
    def of(cls, predicted: Mapping[str, Any], golds: Sequence[Sequence[str]]) -> Self:
        """Score predictions, from `QuestionAnsweringTask.predict` or an exported model."""
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
        """Return `exact_match` or `f1` if null odds above a threshold mean no answer."""
        return np.where(self.null_odds > threshold, ~self.has_answer, scores)


def _spans(nbest: Iterable[Any]) -> Iterable[str]:
    """Yield the first span of each ranking, "" if a context has none."""
    for ranking in nbest:
        entries = json.loads(ranking) if isinstance(ranking, str) else ranking
        yield next((entry["text"] for entry in entries if entry["start"] is not None), "")


class BestThreshold(NamedTuple):
    """The null threshold that is best for a metric.

    Attributes:
        percentage: the metric at the threshold, 0 to 100.
        least: the lowest of the best thresholds, as the official script prints it.
        between: above it, at most halfway to the next null odds, so that rounding changes no
            decision.
    """

    percentage: float
    least: float
    between: float


def best_threshold(spans: SpanScores, scores: np.ndarray) -> BestThreshold:
    """Find the threshold with the highest mean of `exact_match` or `f1`; the lowest of equals.

    If questions are sorted by their null odds, a threshold answers the first k of them. Answering a
    question that has an answer adds its score to the total. Answering one that has none takes away
    the 1 that it gets when it is left unanswered. So a single running sum has the totals of all
    thresholds.

    Args:
        spans: best span of each question.
        scores: `spans.exact_match` or `spans.f1`.
    """
    order = np.argsort(spans.null_odds, kind="stable")
    odds = spans.null_odds[order]
    gains = np.where(spans.has_answer, scores, -spans.is_text.astype(np.float64))[order]
    # Totals of k = 0, 1, … answered questions. No threshold separates questions of equal odds.
    totals = np.count_nonzero(~spans.has_answer) + np.concatenate([[0.0], np.cumsum(gains)])
    can_end = np.concatenate([[True], odds[1:] != odds[:-1], [True]])
    best = int(np.argmax(np.where(can_end, totals, -np.inf)))
    # The lowest threshold for each k, and a bound above the last. Beyond the odds of all questions,
    # thresholds are `_MARGIN` away from these.
    lowest = np.concatenate([[odds[0] - 2 * _MARGIN], odds, [odds[-1] + 2 * _MARGIN]])
    gap = float(lowest[best + 1] - lowest[best])
    return BestThreshold(
        percentage=_PERCENT * float(totals[best]) / len(odds),
        least=float(lowest[best]),
        between=float(lowest[best]) + min(gap / 2.0, _MARGIN),
    )


def threshold_metrics(spans: SpanScores, threshold: float) -> dict[str, float]:
    """Measure with other thresholds: 0, and the best for each metric.

    Args:
        spans: best span of each question.
        threshold: threshold of the model, which is reported beside them.
    """
    exact = best_threshold(spans, spans.exact_match)
    f1 = best_threshold(spans, spans.f1)
    return {
        "null_threshold": threshold,
        "exact_match_untuned": percentage(spans.with_threshold(spans.exact_match, 0.0)),
        "f1_untuned": percentage(spans.with_threshold(spans.f1, 0.0)),
        "best_exact": exact.percentage,
        "best_exact_thresh": exact.least,
        "best_f1": f1.percentage,
        "best_f1_thresh": f1.least,
    }


def question_results(
    source: Questions, predicted: Mapping[str, Any], *, null_threshold: float | None
) -> TaskResults:
    """Compare predictions, of the task or an exported model, with the gold answers.

    Args:
        source: the questions.
        predicted: outputs by name, [questions].
        null_threshold: threshold of the model; None if it answers every question.
    """
    golds = source.golds
    version_2 = not all(golds)
    scores = question_scores(predicted["predicted_answer"], golds, version_2=version_2)
    metrics = _means(scores, golds, version_2)
    cells = prediction_rows(QUESTION_ANSWERING.predictions, predicted)
    if null_threshold is not None and not all(golds):
        metrics |= threshold_metrics(SpanScores.of(predicted, golds), null_threshold)
    has_lines = len(source.lines) == 1 or len(set(source.lines)) > 1  # JSON may be one line
    predictions = []
    for identity, line, gold, row in zip(source.ids, source.lines, golds, cells, strict=True):
        place = source.places.fields(line) if has_lines else {}
        predictions.append({"id": identity, **place, "answers": gold, **row})
    errors = {}
    for name, values in zip(_NAMES, scores, strict=True):
        errors[name] = _PERCENT * error_of_mean(values)
    return TaskResults(metrics=metrics, errors=errors, predictions=predictions)


# A threshold that is tuned on fewer questions of a kind follows single rows: with one of a kind it
# may leave half of the questions unanswered, and its F1 on these rows does not predict that on
# others.
_LEAST_TO_TUNE = 10


def can_tune(source: Questions) -> bool:
    """Return whether there are enough questions with and without an answer to tune a threshold."""
    return min(_questions_by_kind(source)) >= _LEAST_TO_TUNE


def how_tuned(source: Questions) -> str:
    """Return a text on how evaluation questions tune the null threshold, or why they do not."""
    if can_tune(source):
        return "tuned for F1 on the evaluation rows after every epoch"
    answered, unanswered = _questions_by_kind(source)
    return (
        f"0, not tuned: the evaluation rows have {quantity(answered, 'question')} with an answer "
        f"and {unanswered:,} without, and tuning needs at least {_LEAST_TO_TUNE} of each (give "
        "more by --eval, or set null_score_diff_threshold)"
    )


def _questions_by_kind(source: Questions) -> tuple[int, int]:
    """Count questions with an answer, and those without."""
    answered = sum(bool(listed) for listed in source.answers)
    return answered, len(source.answers) - answered


def tuned_threshold(source: Questions, predicted: Mapping[str, Any]) -> float:
    """Return the null threshold with the best F1, independent of the one used for `predicted`."""
    spans = SpanScores.of(predicted, source.golds)
    return best_threshold(spans, spans.f1).between
