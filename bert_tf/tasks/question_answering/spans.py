"""Answers from the logits of windows, in NumPy.

The answers of a question are found in two steps:

1. `window_spans` keeps the best spans of each window: all pairs of a start and an end in the
   context, up to the maximal length, by the sum of their logits.
2. `question_spans` puts the spans of all windows on the tokens of the context, where the same span
   of two windows is one, and ranks them; `choose_answers` picks one, or none.

Unlike `run_squad.py` (`write_predictions`), which pairs the 20 best starts with the 20 best ends,
all spans compete, and a span seen in several windows counts with its best score there. Both differ
only where the best pairs are too long or end before they start.
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
    """Scored spans of contexts, the best first within a question.

    Attributes:
        question: int64 [n], ascending.
        first, last: int64 [n], tokens of the context; the last one is part of the span.
        score: float32 [n], start logit plus end logit.
    """

    question: np.ndarray
    first: np.ndarray
    last: np.ndarray
    score: np.ndarray


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

    All spans are scored at once: row `extra` of the table has, at each start, the span that ends so
    many tokens later. A window of 384 tokens with answers up to 30 tokens has 11,520.

    Args:
        start_logits, end_logits: float32 [windows, length].
        context_begins, context_lengths: int [windows], the context's part in each row.
        max_answer_length: tokens of a span at most.
        n_best: how many spans.

    Returns:
        first, last: int64 [windows, n_best], counted within the context's part.
        score: float32 [windows, n_best], in no order; minus infinity marks a missing span.
    """
    rows, length = start_logits.shape
    places = np.arange(length)
    inside = (places >= context_begins[:, None]) & (
        places < (context_begins + context_lengths)[:, None]
    )
    starts = np.where(inside, start_logits, -np.inf).astype(np.float32)
    ends = np.where(inside, end_logits, -np.inf).astype(np.float32)
    longest = min(max_answer_length, length)
    # Rows that no span is in, so that there are `n_best` places to choose from.
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
        first, last, score: spans of each window, [windows, n], as of `window_spans`.
        n_best: how many spans to keep of a question.
    """
    there = np.isfinite(score)
    question = np.broadcast_to(windows.question[:, None], score.shape)[there]
    first = (first + windows.start[:, None])[there]
    last = (last + windows.start[:, None])[there]
    score = score[there]
    # Equal spans come one after another, the one with the highest score first.
    order = np.lexsort((-score, last, first, question))
    question, first, last, score = (a[order] for a in (question, first, last, score))
    repeated = np.zeros(len(question), bool)
    repeated[1:] = (
        (question[1:] == question[:-1]) & (first[1:] == first[:-1]) & (last[1:] == last[:-1])
    )
    question, first, last, score = (a[~repeated] for a in (question, first, last, score))
    # Ties are broken by the place, so that the order does not depend on the windows.
    order = np.lexsort((last, first, -score, question))
    question, first, last, score = (a[order] for a in (question, first, last, score))
    rank = np.arange(len(question)) - np.searchsorted(question, question, side="left")
    kept = rank < n_best
    return SpanCandidates(
        question=question[kept], first=first[kept], last=last[kept], score=score[kept]
    )


def null_scores(windows: Windows, cls_scores: np.ndarray, num_questions: int) -> np.ndarray:
    """Return the score of no answer, float64 [questions].

    It is the least over a question's windows: the window that is least sure that there is none
    holds the answer (`run_squad.py`, `score_null`).

    Args:
        windows: the question of each window.
        cls_scores: float [windows], start plus end logit of [CLS].
        num_questions: how many questions there are.
    """
    lowest = np.full(num_questions, np.inf)
    np.minimum.at(lowest, windows.question, cls_scores)
    return lowest


def runs_over_sentence_end(text: str) -> bool:
    """Return whether one sentence ends and another begins: in `1873. It lies`, not `St. Louis.`."""
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
    or if a context has no span at all. The ranking is by score, except that the picked span is the
    first of the spans; no answer is part of it if it competes.

    Args:
        candidates: spans of all questions.
        null: float [questions], score of no answer.
        contexts: each context once.
        tokens: of these, with their characters.
        context_index: int [questions], the context of each question.
        rules: when there is no answer, and which span is preferred.

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

    # All that competes: the spans, then no answer.
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
    nothing = np.full(number, len(question))
    nothing[competes] = np.arange(len(question) - len(competes), len(question))
    chosen[~answered] = nothing[~answered]
    return {
        "predicted_answer": [texts[index] for index in chosen],
        "predicted_start": starts[chosen].astype(np.int32),
        "predicted_end": ends[chosen].astype(np.int32),
        "predicted_score": probability[chosen],
        "predicted_null_odds": odds,
        "predicted_nbest": nbest,
    }


def _candidate(text: str, start: int, end: int, probability: float) -> dict[str, Any]:
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
        number: how many questions there are.
    """
    peak = np.full(number, -np.inf)
    np.maximum.at(peak, question, score)
    odds = np.exp(score - peak[question])
    total = np.zeros(number)
    np.add.at(total, question, odds)
    return odds / total[question]
