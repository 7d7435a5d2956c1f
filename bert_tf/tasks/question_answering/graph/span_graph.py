"""`answers.answer_spans` as graph operations: logits to the best spans of questions."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

_NOTHING = -float("inf")


class RankedSpans(NamedTuple):
    """Different spans of each question, the best first.

    Attributes:
        question: int32 [n], ascending.
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
    """`answer_spans.window_spans` in a graph.

    Args:
        start_logits, end_logits: float32 [windows, length].
        context_begins, context_lengths: int32 [windows].
        max_answer_length: tokens of the longest span.
        n_best: spans kept per window.

    Returns:
        first, last (int32, counted within the window's part of the context) and score (float32),
        each [windows, n_best]; a score of minus infinity marks a place without a span.
    """
    windows, length = tf.unstack(tf.shape(start_logits))
    place = tf.range(length)
    begins = context_begins[:, None]
    is_inside = (place >= begins) & (place < begins + context_lengths[:, None])
    starts = tf.where(is_inside, start_logits, _NOTHING)
    ends = tf.where(is_inside, end_logits, _NOTHING)
    # Beyond the row's end, and so that n_best places exist however short the rows are.
    beyond = tf.fill([windows, max_answer_length + n_best], _NOTHING)
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
    """`question_spans` of `answer_spans` in a graph: a span has its best score.

    Args:
        question: int32 [windows].
        first, last: int32 [windows, n], counted within the context.
        score: float32 [windows, n], minus infinity where there is no span.
        max_answer_length: tokens of the longest span.
        n_best: spans kept per question.
    """
    is_span = tf.math.is_finite(score)
    question = tf.boolean_mask(tf.broadcast_to(question[:, None], tf.shape(score)), is_span)
    first, last, score = (tf.boolean_mask(values, is_span) for values in (first, last, score))

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
    """The stable order of values, int32 [n]."""
    return tf.argsort(values, direction="DESCENDING" if descending else "ASCENDING", stable=True)
