"""Rank the spans of contexts by the logits of windows, inside a graph.

The task's `spans` does the same in NumPy.

The best spans of each window are kept (`window_spans`). Those of all windows of a question are
ranked without repetitions (`rank_spans`).
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

NO_SCORE = -float("inf")  # of a place where no span can begin or end


class RankedSpans(NamedTuple):
    """Different spans of each question, the best first.

    Attributes:
        question: int32 [n], ascending, the question of each span.
        first, last: int32 [n], tokens of the context, both inclusive.
        score: float64 [n], start logit plus end logit.
    """

    question: tf.Tensor
    first: tf.Tensor
    last: tf.Tensor
    score: tf.Tensor


def window_spans(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    context_begins: tf.Tensor,
    context_lengths: tf.Tensor,
    *,
    max_answer_length: int,
    n_best: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Find the best spans of each window; the host's `window_spans` in a graph.

    Args:
        start_logits, end_logits: float32 [windows, length].
        context_begins, context_lengths: int32 [windows], position of the context in the row.
        max_answer_length: most tokens of a span.
        n_best: number of spans per window.

    Returns:
        First and last token, int32, and score, float32, [windows, n_best] each. Tokens count from
        the beginning of the context in the window; a score of -inf marks a missing span.
    """
    windows, length = tf.unstack(tf.shape(start_logits))
    place = tf.range(length)
    begins = context_begins[:, None]
    is_inside = (place >= begins) & (place < begins + context_lengths[:, None])
    starts = tf.where(is_inside, start_logits, NO_SCORE)
    ends = tf.where(is_inside, end_logits, NO_SCORE)
    # Places beyond the end of the row; with them there are also at least n_best places.
    beyond = tf.fill([windows, max_answer_length + n_best], NO_SCORE)
    reachable = place[:, None] + tf.range(max_answer_length)
    scores = starts[:, :, None] + tf.gather(tf.concat([ends, beyond], 1), reachable, axis=1)
    flat = tf.concat([tf.reshape(scores, [windows, length * max_answer_length]), beyond], 1)
    score, best = tf.math.top_k(flat, n_best)
    first = best // max_answer_length - begins
    return first, first + best % max_answer_length, score


def rank_spans(
    question: tf.Tensor,
    first: tf.Tensor,
    last: tf.Tensor,
    score: tf.Tensor,
    *,
    max_answer_length: int,
    n_best: int,
) -> RankedSpans:
    """Rank the different spans of each question; the host's `question_spans` in a graph.

    Stable sorts, one key after the other, give the order by several keys: first the best of equal
    spans is found, then spans are sorted by question and score.

    Args:
        question: int32 [windows], the question of each window.
        first, last: int32 [windows, n], tokens of the context.
        score: float32 [windows, n], -inf for no span.
        max_answer_length: most tokens of a span.
        n_best: number of spans to keep of a question.
    """
    is_span = tf.math.is_finite(score)
    question = tf.boolean_mask(tf.broadcast_to(question[:, None], tf.shape(score)), is_span)
    first = tf.boolean_mask(first, is_span)
    last = tf.boolean_mask(last, is_span)
    score = tf.boolean_mask(score, is_span)

    # Number the spans of all questions by (question, first, last).
    reach = tf.cast(tf.reduce_max(tf.concat([first, [0]], 0)) + 1, tf.int64)
    number = tf.cast(question, tf.int64) * reach + tf.cast(first, tf.int64)
    number = number * max_answer_length + tf.cast(last - first, tf.int64)
    order = sorted_by(score, descending=True)
    order = tf.gather(order, sorted_by(tf.gather(number, order)))
    number = tf.gather(number, order)
    is_first = tf.concat([[True], number[1:] != number[:-1]], 0)[: tf.size(number)]
    order = tf.boolean_mask(order, is_first)

    order = tf.gather(order, sorted_by(tf.gather(score, order), descending=True))
    order = tf.gather(order, sorted_by(tf.gather(question, order)))
    ranked = tf.gather(question, order)
    rank = tf.range(tf.size(ranked)) - tf.searchsorted(ranked, ranked)
    order = tf.boolean_mask(order, rank < n_best)
    return RankedSpans(
        question=tf.gather(question, order),
        first=tf.gather(first, order),
        last=tf.gather(last, order),
        score=tf.cast(tf.gather(score, order), tf.float64),
    )


def sorted_by(values: tf.Tensor, *, descending: bool = False) -> tf.Tensor:
    """Return the order that sorts values; equal values keep their order."""
    return tf.argsort(values, direction="DESCENDING" if descending else "ASCENDING", stable=True)
