"""`answers.answer_choice` as graph operations: scored spans to answers and their ranking."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.tasks.question_answering.answers.answer_rules import NO_SPAN_ODDS, AnswerRules
from bert_tf.tasks.question_answering.answers.sentence_ends import SENTENCE_END
from bert_tf.tasks.question_answering.graph.span_graph import RankedSpans, sorted_by

_NOTHING = -float("inf")
_PROBABILITY_DIGITS = 6
# What JSON writes in another way inside a text, the backslash first, since the others bring one.
_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    **{chr(code): f"\\u{code:04x}" for code in range(32) if chr(code) not in "\b\t\n\f\r"},
}
_PLAIN_TEXT = r'[^\x00-\x1f"\\]*'


class SpanTexts(NamedTuple):
    """What spans of contexts stand for.

    Attributes:
        text: string [n].
        start, end: int32 [n], characters of the context.
    """

    text: tf.Tensor
    start: tf.Tensor
    end: tf.Tensor


class ChosenAnswers(NamedTuple):
    """The answer to each question.

    Attributes:
        text: string [questions], empty for no answer.
        start, end: int32 [questions], -1 for no answer.
        probability: float64 [questions].
        null_odds: float64 [questions].
        nbest: string [questions], JSON of `Answers.nbest`.
    """

    text: tf.Tensor
    start: tf.Tensor
    end: tf.Tensor
    probability: tf.Tensor
    null_odds: tf.Tensor
    nbest: tf.Tensor


def choose_answers(
    spans: RankedSpans, texts: SpanTexts, null: tf.Tensor, rules: AnswerRules
) -> ChosenAnswers:
    """`answer_choice.choose_answers` in a graph.

    Args:
        spans: from `rank_spans`.
        texts: of these spans.
        null: float64 [questions], least start plus end logit of [CLS] over the windows.
        rules: see there.
    """
    questions = tf.size(null)
    every = tf.range(questions)
    first = tf.searchsorted(spans.question, every)
    has_span = tf.searchsorted(spans.question, every, side="right") > first
    # One more span, so that there is something to look up where no question has any.
    best = tf.gather(tf.concat([spans.score, [0.0]], 0), tf.where(has_span, first, 0))
    best = tf.where(has_span, best, tf.constant(_NOTHING, tf.float64))
    picked = _within_sentence(spans, texts, best, first, rules.sentence_margin)
    odds = tf.where(has_span, null - best, tf.constant(NO_SPAN_ODDS, tf.float64))
    is_answered = has_span
    if rules.may_be_unanswerable:
        is_answered &= ~(odds > rules.null_threshold)

    # All that competes: the spans, then no answer.
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
    nothing = tf.scatter_nd(
        competes[:, None], number + tf.range(tf.size(competes)), tf.stack([questions])
    )
    chosen = tf.where(is_answered, picked, nothing)
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
    return ChosenAnswers(
        text=tf.gather(text, chosen),
        start=tf.gather(start, chosen),
        end=tf.gather(end, chosen),
        probability=tf.gather(probability, chosen),
        null_odds=odds,
        nbest=tf.strings.join(["[", lists, "]"]),
    )


def _within_sentence(
    spans: RankedSpans, texts: SpanTexts, best: tf.Tensor, first: tf.Tensor, margin: float
) -> tf.Tensor:
    """The first span of each question near the best and within a sentence; the best if none is.

    Args:
        spans, texts: the spans.
        best: float64 [questions], score of the best span.
        first: int32 [questions], the place of the best span.
        margin: see `AnswerRules`.
    """
    if not margin:
        return first
    runs_over = tf.strings.regex_full_match(texts.text, f"(?s).*(?:{SENTENCE_END}).*")
    is_near = spans.score >= tf.gather(best, spans.question) - margin
    number = tf.size(spans.question)
    place = tf.where(is_near & ~runs_over, tf.range(number), number)
    least = tf.math.unsorted_segment_min(place, spans.question, tf.size(first))
    return tf.where(least < number, least, first)


def _softmax(question: tf.Tensor, score: tf.Tensor, questions: tf.Tensor) -> tf.Tensor:
    peak = tf.math.unsorted_segment_max(score, question, questions)
    odds = tf.exp(score - tf.gather(peak, question))
    total = tf.math.unsorted_segment_sum(odds, question, questions)
    return odds / tf.gather(total, question)


def _json_entries(
    text: tf.Tensor, start: tf.Tensor, end: tf.Tensor, probability: tf.Tensor
) -> tf.Tensor:
    is_span = start >= 0
    digits = tf.strings.as_string(tf.cast(probability, tf.float32), precision=_PROBABILITY_DIGITS)
    parts = [
        '{"text": "',
        _json_text(text),
        '", "start": ',
        tf.where(is_span, tf.strings.as_string(start), "null"),
        ', "end": ',
        tf.where(is_span, tf.strings.as_string(end), "null"),
        ', "probability": ',
        digits,
        "}",
    ]
    return tf.strings.join(parts)


def _json_text(texts: tf.Tensor) -> tf.Tensor:
    """Texts as JSON writes them between quotes; few need a change."""
    changed = tf.where(~tf.strings.regex_full_match(texts, _PLAIN_TEXT))
    escaped = tf.gather_nd(texts, changed)
    for character, written in _ESCAPES.items():
        pattern = f"\\x{ord(character):02x}"
        escaped = tf.strings.regex_replace(escaped, pattern, written.replace("\\", "\\\\"))
    return tf.tensor_scatter_nd_update(texts, changed, escaped)
