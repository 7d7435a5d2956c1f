"""Answers from the logits of windows, in NumPy.

The answers of a question are found in two steps:

1. `window_spans` scores all spans of each window, up to the maximal length, by the sum of the
   logits of start and end, and keeps the best.
2. `question_spans` ranks the spans of all windows of a question; the same span of two windows
   counts once. `choose_answers` picks one of them, or none.

`run_squad.py` (`write_predictions`) pairs the 20 best starts with the 20 best ends. Here, all spans
compete, and a span that several windows have counts with its best score. Results only differ where
the best pairs are too long, or end before they start.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.data.rows.windows import Windows
from bert_tf.data.text.host_wordpiece import TokenizedTexts
from bert_tf.serving.signatures import (
    NO_SPAN_ODDS,
    PROBABILITY_DIGITS,
    SENTENCE_END,
    AnswerRules,
)

_SENTENCE_END = re.compile(SENTENCE_END)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanCandidates:
    """Scored spans of contexts; `question_spans` returns the best of a question first.

    Attributes:
        question: int64 [n], the question of each span, ascending.
        first, last: int64 [n], tokens of the context; the last one is part of the span.
        score: float32 [n], start logit plus end logit.
    """

    question: np.ndarray
    first: np.ndarray
    last: np.ndarray
    score: np.ndarray

    def selected(self, chosen: np.ndarray) -> SpanCandidates:
        """Return the spans with these numbers, int [m], or where a mask, bool [n], is True."""
        return SpanCandidates(
            question=self.question[chosen],
            first=self.first[chosen],
            last=self.last[chosen],
            score=self.score[chosen],
        )


def window_spans(
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    context_begins: np.ndarray,
    context_lengths: np.ndarray,
    *,
    max_answer_length: int,
    n_best: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the best spans of each window.

    All spans are scored at once, in a table for each window: row `extra`, column `start` is the
    span that ends `extra` tokens after its start. With windows of 384 tokens and answers up to 30
    tokens, a table has 11,520 spans.

    Args:
        start_logits, end_logits: float32 [windows, length].
        context_begins, context_lengths: int [windows], the context's part in each row.
        max_answer_length: most tokens of a span.
        n_best: number of spans to return for each window.

    Returns:
        first, last: int64 [windows, n_best], counted within the context's part.
        score: float32 [windows, n_best]; minus infinity marks a missing span. Spans are not sorted.
    """
    rows, length = start_logits.shape
    places = np.arange(length)
    context_ends = context_begins + context_lengths
    inside = (places >= context_begins[:, None]) & (places < context_ends[:, None])
    starts = np.where(inside, start_logits, -np.inf).astype(np.float32)
    ends = np.where(inside, end_logits, -np.inf).astype(np.float32)
    longest = min(max_answer_length, length)
    # Empty rows of the table, so that it has at least `n_best` places
    spare = max(0, -(-n_best // length) - longest)
    scores = np.full((rows, longest + spare, length), -np.inf, np.float32)
    for extra in range(longest):
        scores[:, extra, : length - extra] = starts[:, : length - extra] + ends[:, extra:]
    flat = scores.reshape(rows, scores.shape[1] * length)
    best = np.argpartition(-flat, n_best - 1, axis=1)[:, :n_best]
    added, first = np.divmod(best, length)
    first = first - context_begins[:, None]
    return first, first + added, np.take_along_axis(flat, best, axis=1)


def question_spans(
    windows: Windows, first: np.ndarray, last: np.ndarray, score: np.ndarray, *, n_best: int
) -> SpanCandidates:
    """Rank the different spans of each question.

    Args:
        windows: the part of the context that each row has.
        first, last, score: spans of each window, [windows, n], see `window_spans`.
        n_best: number of spans to keep of a question.
    """
    is_span = np.isfinite(score)
    spans = SpanCandidates(
        question=np.broadcast_to(windows.question[:, None], score.shape)[is_span],
        first=(first + windows.start[:, None])[is_span],
        last=(last + windows.start[:, None])[is_span],
        score=score[is_span],
    )
    # Equal spans come one after another, the one with the highest score first.
    spans = spans.selected(np.lexsort((-spans.score, spans.last, spans.first, spans.question)))
    is_repeated = np.zeros(len(spans.question), bool)
    is_repeated[1:] = (
        (spans.question[1:] == spans.question[:-1])
        & (spans.first[1:] == spans.first[:-1])
        & (spans.last[1:] == spans.last[:-1])
    )
    spans = spans.selected(~is_repeated)
    # Ties are broken by the place, so that the order does not depend on the windows.
    spans = spans.selected(np.lexsort((spans.last, spans.first, -spans.score, spans.question)))
    question = spans.question
    rank = np.arange(len(question)) - np.searchsorted(question, question, side="left")
    return spans.selected(rank < n_best)


def null_scores(windows: Windows, cls_scores: np.ndarray, num_questions: int) -> np.ndarray:
    """Return the score of no answer, float64 [questions].

    It is the lowest score over a question's windows, because only the window that holds the answer
    can show that there is one (`run_squad.py`, `score_null`).

    Args:
        windows: has the question of each window.
        cls_scores: float [windows], start plus end logit of [CLS].
        num_questions: number of questions.
    """
    lowest = np.full(num_questions, np.inf)
    np.minimum.at(lowest, windows.question, cls_scores)
    return lowest


def runs_over_sentence_end(text: str) -> bool:
    """Return whether one sentence ends and another begins: `1873. It lies`, not `St. Louis.`."""
    return _SENTENCE_END.search(text) is not None


def choose_answers(
    candidates: SpanCandidates,
    null: np.ndarray,
    contexts: Sequence[str],
    tokens: TokenizedTexts,
    context_index: np.ndarray,
    rules: AnswerRules,
) -> dict[str, Any]:
    """Pick a span for each question, or none.

    The span is the best one, or one within a sentence that is almost as good (`AnswerRules`). There
    is no answer if the model may leave questions unanswered and the null odds exceed the threshold,
    or if a context has no span at all. The ranking is by score, except that the picked span comes
    first among the spans. "No answer" is an entry of the ranking if it competes.

    Args:
        candidates: spans of all questions.
        null: float [questions], score of no answer.
        contexts: each context once.
        tokens: tokens of the contexts, with their characters.
        context_index: int [questions], the context of each question.
        rules: rules for no answer and for spans within a sentence.

    Returns:
        The outputs of `QuestionAnswerer` by name, [questions].
    """
    number = len(null)
    question = candidates.question
    score = candidates.score.astype(np.float64)
    begins = tokens.offsets[context_index[question]]
    starts = tokens.first_characters[begins + candidates.first]
    ends = tokens.last_characters[begins + candidates.last]
    texts = [
        contexts[context][start:end]
        for context, start, end in zip(context_index[question], starts, ends, strict=True)
    ]

    has_span = np.zeros(number, bool)
    has_span[question] = True
    picked = np.searchsorted(question, np.arange(number), side="left")
    best = np.full(number, -np.inf)
    best[has_span] = score[picked[has_span]]
    if rules.sentence_margin:
        is_near = score >= best[question] - rules.sentence_margin
        _prefer_within_sentence(picked, texts, question, is_near)
    odds = np.where(has_span, null - best, NO_SPAN_ODDS)
    answered = has_span & ~(rules.may_be_unanswerable & (odds > rules.null_threshold))

    # All candidates: the spans, then "no answer" where it competes.
    competes = np.flatnonzero(~has_span | rules.may_be_unanswerable)
    question = np.concatenate([question, competes])
    score = np.concatenate([score, null[competes]])
    starts = np.concatenate([starts, np.full(len(competes), -1)])
    ends = np.concatenate([ends, np.full(len(competes), -1)])
    texts += [""] * len(competes)
    probability = _probabilities(question, score, number)

    is_picked = np.zeros(len(question), bool)
    is_picked[picked[has_span]] = True
    rank = np.where(is_picked, best[question], score)
    order = np.lexsort((~is_picked, -rank, question))
    nbest: list[list[dict[str, Any]]] = [[] for _ in range(number)]
    for index in order.tolist():
        nbest[question[index]].append(
            _candidate(texts[index], int(starts[index]), int(ends[index]), probability[index])
        )
    chosen = picked.copy()
    no_answer = np.full(number, len(question))  # the candidate "no answer" of each question
    no_answer[competes] = np.arange(len(question) - len(competes), len(question))
    chosen[~answered] = no_answer[~answered]
    return {
        "predicted_answer": [texts[index] for index in chosen],
        "predicted_start": starts[chosen].astype(np.int32),
        "predicted_end": ends[chosen].astype(np.int32),
        "predicted_score": probability[chosen],
        "predicted_null_odds": odds,
        "predicted_nbest": nbest,
    }


def _candidate(text: str, start: int, end: int, probability: float) -> dict[str, Any]:
    """Return an entry of `predicted_nbest`; a start of -1 stands for no answer."""
    return {
        "text": text,
        "start": start if start >= 0 else None,
        "end": end if start >= 0 else None,
        "probability": round(float(probability), PROBABILITY_DIGITS),
    }


def _prefer_within_sentence(
    picked: np.ndarray, texts: list[str], question: np.ndarray, is_near: np.ndarray
) -> None:
    """Set `picked`, in place, to each question's first near span within a sentence, if any."""
    near = np.flatnonzero(is_near)
    within = near[[not runs_over_sentence_end(texts[index]) for index in near]]
    questions_within, first = np.unique(question[within], return_index=True)
    picked[questions_within] = within[first]


def _probabilities(question: np.ndarray, score: np.ndarray, number: int) -> np.ndarray:
    """Return the softmax of scores within each question, float64 [n].

    Args:
        question: int [n], the question of each score.
        score: float [n].
        number: number of questions.
    """
    peak = np.full(number, -np.inf)
    np.maximum.at(peak, question, score)
    odds = np.exp(score - peak[question])
    total = np.zeros(number)
    np.add.at(total, question, odds)
    return odds / total[question]
