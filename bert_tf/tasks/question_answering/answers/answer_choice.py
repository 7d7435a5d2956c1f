"""From scored spans to answers: the one that is given, and those that it was preferred to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.data.text.host_wordpiece import TokenizedTexts
from bert_tf.tasks.question_answering.answers.answer_rules import NO_SPAN_ODDS, AnswerRules
from bert_tf.tasks.question_answering.answers.answer_spans import SpanCandidates
from bert_tf.tasks.question_answering.answers.sentence_ends import runs_over_sentence_end

_PROBABILITY_DIGITS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
    """One answer per question.

    Attributes:
        texts: exact slices of the contexts, "" for no answer.
        starts, ends: int64 [questions], characters of the context, -1 for no answer.
        scores: float64 [questions], probability of the answer among the candidates.
        null_odds: float64 [questions], null score minus best span's score, `NO_SPAN_ODDS` where
            there is no span.
        nbest: the candidates of each question as `choose_answers` ranks them, each with `text`,
            `start`, `end` (None for no answer) and `probability`.
    """

    texts: list[str]
    starts: np.ndarray
    ends: np.ndarray
    scores: np.ndarray
    null_odds: np.ndarray
    nbest: list[list[dict[str, Any]]]


def choose_answers(
    candidates: SpanCandidates,
    null: np.ndarray,
    contexts: Sequence[str],
    tokens: TokenizedTexts,
    context_index: np.ndarray,
    rules: AnswerRules,
) -> Answers:
    """Picks a span for each question, or none.

    The span is the best one, or one within a sentence that is almost as good (`AnswerRules`). No
    answer is given where the null odds exceed the threshold and the model may leave questions
    unanswered, and where a context has no span at all. The ranking is by score, except that the
    span that was picked is the first of the spans; no answer is part of it where it competes.

    Args:
        candidates: from `question_spans`.
        null: float [questions], from `null_scores`.
        contexts: the texts.
        tokens: their tokens.
        context_index: int [questions], the context of each question.
        rules: see above.
    """
    number = len(null)
    question, score = candidates.question, candidates.score.astype(np.float64)
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
        is_span = starts[index] >= 0
        nbest[question[index]].append(
            {
                "text": texts[index],
                "start": int(starts[index]) if is_span else None,
                "end": int(ends[index]) if is_span else None,
                "probability": round(float(probability[index]), _PROBABILITY_DIGITS),
            }
        )
    chosen = picked.copy()
    nothing = np.full(number, len(question))
    nothing[competes] = np.arange(len(question) - len(competes), len(question))
    chosen[~answered] = nothing[~answered]
    return Answers(
        texts=[texts[index] for index in chosen],
        starts=starts[chosen],
        ends=ends[chosen],
        scores=probability[chosen],
        null_odds=odds,
        nbest=nbest,
    )


def _prefer_within_sentence(
    picked: np.ndarray, texts: list[str], question: np.ndarray, is_near: np.ndarray
) -> None:
    """Sets `picked` to the first near span of each question that lies within a sentence, if any.

    Args:
        picked: int64 [questions], the best span of each, changed in place.
        texts: of the spans.
        question: int64 [spans], ascending.
        is_near: bool [spans], whether the score is close enough to the best.
    """
    near = np.flatnonzero(is_near)
    within = near[[not runs_over_sentence_end(texts[index]) for index in near]]
    found, first = np.unique(question[within], return_index=True)
    picked[found] = within[first]


def _probabilities(question: np.ndarray, score: np.ndarray, number: int) -> np.ndarray:
    """Softmax of the scores of each question."""
    peak = np.full(number, -np.inf)
    np.maximum.at(peak, question, score)
    odds = np.exp(score - peak[question])
    total = np.zeros(number)
    np.add.at(total, question, odds)
    return odds / total[question]
