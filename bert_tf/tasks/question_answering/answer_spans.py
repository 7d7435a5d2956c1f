"""From start and end logits to answers: the best spans of all windows, or no answer.

The rule is that of google-research/bert `run_squad.py` (`write_predictions`) with two differences:
all spans up to the maximal length compete, not only those of the best starts and ends; and a span
seen in several windows counts with its best score there, so no window has to be preferred.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.data.rows.token_characters import TokenizedTexts
from bert_tf.data.rows.windows import Windows


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanCandidates:
    """Scored spans of contexts, the best first within a question.

    Attributes:
        question: int64 [n], ascending.
        first, last: int64 [n], tokens of the context, both inclusive.
        score: float32 [n], start logit plus end logit.
    """

    question: np.ndarray
    first: np.ndarray
    last: np.ndarray
    score: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
    """One answer per question.

    Attributes:
        texts: exact slices of the contexts, "" for no answer.
        starts, ends: int64 [questions], characters of the context, -1 for no answer.
        scores: float64 [questions], probability of the answer among the candidates.
        null_differences: float64 [questions], null score minus best span's score.
    """

    texts: list[str]
    starts: np.ndarray
    ends: np.ndarray
    scores: np.ndarray
    null_differences: np.ndarray


def window_spans(
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    context_begins: np.ndarray,
    context_lengths: np.ndarray,
    *,
    max_answer_length: int,
    n_best: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best spans of each window.

    Args:
        start_logits, end_logits: float32 [windows, length].
        context_begins: int [windows], where in its row the context begins.
        context_lengths: int [windows], tokens of the context in the window.
        max_answer_length: tokens of the longest span allowed.
        n_best: spans kept per window.

    Returns:
        first, last (int64, counted within the window's part of the context) and score (float32),
        each [windows, n_best]; a score of minus infinity marks a place without a span.
    """
    rows, length = start_logits.shape
    places = np.arange(length)
    inside = (places >= context_begins[:, None]) & (
        places < (context_begins + context_lengths)[:, None]
    )
    starts = np.where(inside, start_logits, -np.inf).astype(np.float32)
    ends = np.where(inside, end_logits, -np.inf).astype(np.float32)
    longest = min(max_answer_length, length)
    spare = max(0, -(-n_best // length) - longest)
    scores = np.full((rows, longest + spare, length), -np.inf, np.float32)
    for extra in range(longest):
        scores[:, extra, : length - extra] = starts[:, : length - extra] + ends[:, extra:]
    flat = scores.reshape(rows, -1)
    best = np.argpartition(-flat, n_best - 1, axis=1)[:, :n_best]
    added, first = np.divmod(best, length)
    first = first - context_begins[:, None]
    return first, first + added, np.take_along_axis(flat, best, axis=1)


def question_spans(
    windows: Windows, first: np.ndarray, last: np.ndarray, score: np.ndarray, *, n_best: int
) -> SpanCandidates:
    """The best different spans of each question over all its windows.

    Args:
        windows: the windows, in the order of the rows of the other arguments.
        first, last, score: [windows, n] from `window_spans`.
        n_best: spans kept per question.
    """
    there = np.isfinite(score)
    question = np.broadcast_to(windows.question[:, None], score.shape)[there]
    first = (first + windows.start[:, None])[there]
    last = (last + windows.start[:, None])[there]
    score = score[there]
    order = np.lexsort((-score, last, first, question))
    question, first, last, score = (a[order] for a in (question, first, last, score))
    repeated = np.zeros(len(question), bool)
    repeated[1:] = (
        (question[1:] == question[:-1]) & (first[1:] == first[:-1]) & (last[1:] == last[:-1])
    )
    question, first, last, score = (a[~repeated] for a in (question, first, last, score))
    order = np.lexsort((last, first, -score, question))
    question, first, last, score = (a[order] for a in (question, first, last, score))
    rank = np.arange(len(question)) - np.searchsorted(question, question, side="left")
    kept = rank < n_best
    return SpanCandidates(
        question=question[kept], first=first[kept], last=last[kept], score=score[kept]
    )


def null_scores(windows: Windows, cls_scores: np.ndarray, num_questions: int) -> np.ndarray:
    """The score of having no answer: the least start plus end logit of [CLS] over the windows.

    Args:
        windows: the windows.
        cls_scores: float [windows], start plus end logit of [CLS].
        num_questions: number of questions, each with a window.
    """
    lowest = np.full(num_questions, np.inf)
    np.minimum.at(lowest, windows.question, cls_scores)
    return lowest


def choose_answers(
    candidates: SpanCandidates,
    null: np.ndarray,
    contexts: Sequence[str],
    tokens: TokenizedTexts,
    context_index: np.ndarray,
    *,
    may_be_unanswerable: bool,
    null_threshold: float,
) -> Answers:
    """Picks the best span of each question, or none.

    No answer is given where the null score exceeds the best span's by more than `null_threshold`
    and `may_be_unanswerable`, and where a context has no span at all.

    Args:
        candidates: from `question_spans`.
        null: float [questions], from `null_scores`.
        contexts: the texts.
        tokens: their tokens.
        context_index: int [questions], the context of each question.
        may_be_unanswerable: whether the model was trained on questions without an answer.
        null_threshold: see above.
    """
    number = len(null)
    has_span = np.zeros(number, bool)
    has_span[candidates.question] = True
    best = np.searchsorted(candidates.question, np.arange(number), side="left")
    best_score = np.full(number, -np.inf)
    best_score[has_span] = candidates.score[best[has_span]]
    difference = null - best_score
    answered = has_span & ~(may_be_unanswerable & (difference > null_threshold))
    scores = _probabilities(
        candidates,
        np.where(answered, best_score, null),
        null if may_be_unanswerable else np.full(number, -np.inf),
    )

    starts = np.full(number, -1, np.int64)
    ends = np.full(number, -1, np.int64)
    begins = tokens.offsets[context_index[answered]]
    starts[answered] = tokens.first_characters[begins + candidates.first[best[answered]]]
    ends[answered] = tokens.last_characters[begins + candidates.last[best[answered]]]
    texts = [
        contexts[context][start:end] if start >= 0 else ""
        for context, start, end in zip(context_index, starts, ends, strict=True)
    ]
    return Answers(
        texts=texts, starts=starts, ends=ends, scores=scores, null_differences=difference
    )


def _probabilities(candidates: SpanCandidates, chosen: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Softmax of the chosen scores among all spans and the null score; 1 where there is no span."""
    number = len(null)
    peak = null.astype(np.float64)
    np.maximum.at(peak, candidates.question, candidates.score)
    has_span = np.zeros(number, bool)
    has_span[candidates.question] = True
    peak[~has_span] = chosen[~has_span]
    total = np.zeros(number)
    np.add.at(total, candidates.question, np.exp(candidates.score - peak[candidates.question]))
    total += np.where(has_span, np.exp(null - peak), 1.0)
    return np.exp(chosen - peak) / total
