"""Answers from the logits of windows, inside a graph; the task's `spans` does the same in NumPy.

The best spans of each window are kept (`window_spans`). Those of all windows of a question are
ranked without repetitions (`rank_spans`), and compete with the score of no answer
(`choose_answers`).
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.serving.graphs.spans import characters_at_bytes, cut_texts
from bert_tf.serving.signatures import (
    NO_SPAN_ODDS,
    PROBABILITY_DIGITS,
    SENTENCE_END,
    AnswerRules,
)
from bert_tf.serving.text_module import json_text

_NOTHING = -float("inf")  # score of a place where no span can begin or end


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
    starts = tf.where(is_inside, start_logits, _NOTHING)
    ends = tf.where(is_inside, end_logits, _NOTHING)
    # Places beyond the end of the row; with them there are also at least n_best places.
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


class SpanTexts(NamedTuple):
    """The text of each span, and its place.

    Attributes:
        text: string [n].
        start, end: int32 [n], first character in the context, and the character after the last.
    """

    text: tf.Tensor
    start: tf.Tensor
    end: tf.Tensor


def choose_answers(
    spans: RankedSpans, texts: SpanTexts, null: tf.Tensor, rules: AnswerRules
) -> dict[str, tf.Tensor]:
    """Choose the answer of each question; the host's `choose_answers` in a graph.

    Args:
        spans: ranked spans of all questions.
        texts: texts of the spans.
        null: float64 [questions], lowest start plus end logit of [CLS] over the windows.
        rules: rules for no answer and for spans within a sentence.

    Returns:
        Outputs of `QuestionAnswerer`; `predicted_nbest` is JSON.
    """
    questions = tf.size(null)
    every = tf.range(questions)
    first = tf.searchsorted(spans.question, every)
    has_span = tf.searchsorted(spans.question, every, side="right") > first
    # One more span, so that the lookup also works if no question has any.
    best = tf.gather(tf.concat([spans.score, [0.0]], 0), tf.where(has_span, first, 0))
    best = tf.where(has_span, best, tf.constant(_NOTHING, tf.float64))
    picked = _within_sentence(spans, texts, best, first, rules.sentence_margin)
    odds = tf.where(has_span, null - best, tf.constant(NO_SPAN_ODDS, tf.float64))
    is_answered = has_span
    if rules.may_be_unanswerable:
        is_answered &= ~(odds > rules.null_threshold)

    # All candidates: the spans, then "no answer" where it competes.
    competes = tf.range(questions)
    if not rules.may_be_unanswerable:
        competes = tf.boolean_mask(competes, ~has_span)
    nowhere = tf.fill([tf.size(competes)], -1)
    question = tf.concat([spans.question, competes], 0)
    score = tf.concat([spans.score, tf.gather(null, competes)], 0)
    text = tf.concat([texts.text, tf.fill([tf.size(competes)], "")], 0)
    start = tf.concat([texts.start, nowhere], 0)
    end = tf.concat([texts.end, nowhere], 0)
    probability = _softmax(question, score, questions)

    number = tf.size(spans.question)
    no_answer = tf.scatter_nd(
        competes[:, None], number + tf.range(tf.size(competes)), tf.stack([questions])
    )
    chosen = tf.where(is_answered, picked, no_answer)
    is_picked = tf.scatter_nd(
        tf.boolean_mask(picked, has_span)[:, None],
        tf.ones([tf.math.count_nonzero(has_span, dtype=tf.int32)], tf.int32),
        tf.stack([tf.size(question)]),
    )
    rank = tf.where(is_picked == 1, tf.gather(best, question), score)
    order = sorted_by(is_picked, descending=True)
    order = tf.gather(order, sorted_by(tf.gather(rank, order), descending=True))
    order = tf.gather(order, sorted_by(tf.gather(question, order)))
    entries = _json_entries(text, start, end, probability)
    lists = tf.strings.unsorted_segment_join(
        tf.gather(entries, order), tf.gather(question, order), questions, separator=", "
    )
    return {
        "predicted_answer": tf.gather(text, chosen),
        "predicted_start": tf.gather(start, chosen),
        "predicted_end": tf.gather(end, chosen),
        "predicted_score": tf.cast(tf.gather(probability, chosen), tf.float32),
        "predicted_null_odds": tf.cast(odds, tf.float32),
        "predicted_nbest": tf.strings.join(["[", lists, "]"]),
    }


def _within_sentence(
    spans: RankedSpans, texts: SpanTexts, best: tf.Tensor, first: tf.Tensor, margin: float
) -> tf.Tensor:
    """Return each question's first span near the best one within a sentence; else the best."""
    if not margin:
        return first
    runs_over = tf.strings.regex_full_match(texts.text, f"(?s).*(?:{SENTENCE_END}).*")
    is_near = spans.score >= tf.gather(best, spans.question) - margin
    number = tf.size(spans.question)
    place = tf.where(is_near & ~runs_over, tf.range(number), number)
    least = tf.math.unsorted_segment_min(place, spans.question, tf.size(first))
    return tf.where(least < number, least, first)


def _softmax(question: tf.Tensor, score: tf.Tensor, questions: tf.Tensor) -> tf.Tensor:
    """Return probabilities among the candidates of each question."""
    peak = tf.math.unsorted_segment_max(score, question, questions)
    odds = tf.exp(score - tf.gather(peak, question))
    total = tf.math.unsorted_segment_sum(odds, question, questions)
    return odds / tf.gather(total, question)


def _json_entries(
    text: tf.Tensor, start: tf.Tensor, end: tf.Tensor, probability: tf.Tensor
) -> tf.Tensor:
    """Write the entries of `predicted_nbest`, string [n]; a start of -1 stands for no answer."""
    is_span = start >= 0
    digits = tf.strings.as_string(tf.cast(probability, tf.float32), precision=PROBABILITY_DIGITS)
    parts = [
        '{"text": "',
        json_text(text),
        '", "start": ',
        tf.where(is_span, tf.strings.as_string(start), "null"),
        ', "end": ',
        tf.where(is_span, tf.strings.as_string(end), "null"),
        ', "probability": ',
        digits,
        "}",
    ]
    return tf.strings.join(parts)


def span_texts(
    spans: RankedSpans, contexts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor
) -> SpanTexts:
    """Cut the texts of spans out of their contexts.

    Args:
        spans: spans of all questions.
        contexts: string [questions].
        starts, ends: ragged int64 [questions, (tokens)], bytes of the contexts' tokens.
    """
    first_tokens = tf.gather(starts.row_starts(), spans.question)
    begin = tf.gather(starts.flat_values, first_tokens + tf.cast(spans.first, tf.int64))
    end = tf.gather(ends.flat_values, first_tokens + tf.cast(spans.last, tf.int64))
    text = cut_texts(contexts, spans.question, begin, end)
    first_character = characters_at_bytes(contexts, spans.question, begin)
    first_character = tf.cast(first_character, tf.int32)
    after = tf.cast(characters_at_bytes(contexts, spans.question, end), tf.int32)
    return SpanTexts(text=text, start=first_character, end=after)
