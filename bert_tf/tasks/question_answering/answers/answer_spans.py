"""From start and end logits to scored spans of contexts: the best of all windows.

As google-research/bert `run_squad.py` (`write_predictions`) with two differences: all spans up to
the maximal length compete, not only those of the best starts and ends; and a span seen in several
windows counts with its best score there, so no window has to be preferred.
"""

from __future__ import annotations

import dataclasses

import numpy as np

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
    flat = scores.reshape(rows, scores.shape[1] * length)
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
