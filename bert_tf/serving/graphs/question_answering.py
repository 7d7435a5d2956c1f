"""Question answering over contexts of any length, inside one graph.

A context is read in overlapping windows (`window_rows`). `span_ranking` finds the best spans of a
question in these, and they compete with the score of no answer (`choose_answers`). The method is
that of google-research/bert run_squad.py (Devlin et al. 2019, sections 4.2 and 4.3). The same steps
in NumPy are in `bert_tf.data.rows.windows` and the task's host.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from bert_tf.data.rows.windows import SPECIALS_BEFORE_CONTEXT
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.graphs.span_ranking import (
    NO_SCORE,
    RankedSpans,
    rank_spans,
    sorted_by,
    window_spans,
)
from bert_tf.serving.graphs.spans import characters_at_bytes, cut_texts
from bert_tf.serving.signatures import (
    FAR_BELOW,
    NO_SPAN_ODDS,
    PROBABILITY_DIGITS,
    SENTENCE_END,
    AnswerLengths,
    AnswerRules,
)
from bert_tf.serving.text_module import TextModule, json_text


class WindowRows(NamedTuple):
    """The rows of all windows.

    Attributes:
        word_ids, type_ids: ragged int32 [windows, (tokens)].
        question: int32 [windows], ascending, question of each window.
        start, length: int32 [windows], first token of the context in the window, and number of its
            tokens there.
        context_begin: int32 [windows], position in the row where the context begins.
    """

    word_ids: tf.RaggedTensor
    type_ids: tf.RaggedTensor
    question: tf.Tensor
    start: tf.Tensor
    length: tf.Tensor
    context_begin: tf.Tensor


def context_windows(
    context_lengths: tf.Tensor,
    question_lengths: tf.Tensor,
    *,
    max_seq_length: int,
    doc_stride: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Cut contexts into windows; `bert_tf.data.rows.windows.cut_windows` in a graph.

    Args:
        context_lengths, question_lengths: int32 [questions], tokens.
        max_seq_length: tokens of a row, question and special tokens included.
        doc_stride: tokens from the start of a window to the start of the next.

    Returns:
        Question, start and length of each window, int32 [windows].
    """
    capacity = max_seq_length - SPECIALS_OF_PAIR - question_lengths
    step = tf.minimum(doc_stride, capacity)
    beyond_first = tf.maximum(context_lengths - capacity, 0)
    counts = 1 + (beyond_first + step - 1) // step
    question = tf.repeat(tf.range(tf.size(counts)), counts)
    start = tf.ragged.range(counts).flat_values * tf.gather(step, question)
    length = tf.minimum(tf.gather(capacity, question), tf.gather(context_lengths, question) - start)
    return question, start, length


def window_rows(
    questions: tf.RaggedTensor,
    contexts: tf.RaggedTensor,
    *,
    max_seq_length: int,
    doc_stride: int,
    tokenizer: WordPieceTokenizer,
) -> WindowRows:
    """Build `[CLS] question [SEP] part of the context [SEP]` for every window.

    Args:
        questions, contexts: ragged int32 [questions, (tokens)]; the questions are already cut.
        max_seq_length, doc_stride: see `context_windows`.
        tokenizer: has the ids of [CLS] and [SEP].
    """
    question_lengths = tf.cast(questions.row_lengths(), tf.int32)
    question, start, length = context_windows(
        tf.cast(contexts.row_lengths(), tf.int32),
        question_lengths,
        max_seq_length=max_seq_length,
        doc_stride=doc_stride,
    )
    context_starts = tf.gather(contexts.row_starts(), question) + tf.cast(start, tf.int64)
    positions = tf.ragged.range(context_starts, context_starts + tf.cast(length, tf.int64))
    part = tf.gather(contexts.flat_values, positions)
    question_tokens = tf.gather(questions, question)
    cls = tf.fill([tf.size(question), 1], tokenizer.cls_id)
    sep = tf.fill([tf.size(question), 1], tokenizer.sep_id)
    left = tf.concat([cls, question_tokens, sep], axis=1)
    right = tf.concat([part, sep], axis=1)
    return WindowRows(
        word_ids=tf.concat([left, right], axis=1),
        type_ids=tf.concat([tf.zeros_like(left), tf.ones_like(right)], axis=1),
        question=question,
        start=start,
        length=length,
        context_begin=tf.gather(question_lengths, question) + SPECIALS_BEFORE_CONTEXT,
    )


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
    best = tf.where(has_span, best, tf.constant(NO_SCORE, tf.float64))
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


def _span_texts(
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


def span_logits(
    model: Any, batch: dict[str, tf.Tensor], *, training: bool, dropout_key: tf.Tensor | None
) -> dict[str, tf.Tensor]:
    """Return start and end logits, float32 [rows, length], far below zero on padding."""
    start, end = model(batch, training=training, dropout_key=dropout_key)
    padding = FAR_BELOW * (1.0 - tf.cast(batch["input_mask"], tf.float32))
    return {"start_logits": start + padding, "end_logits": end + padding}


class QuestionAnswerer(TextModule):
    """Answers `question` from `context`.

    Outputs, all [n]: `predicted_answer` string, a slice of the context, empty for no answer;
    `predicted_start` and `predicted_end` int32, characters (code points) of the context as given,
    -1 for no answer; `predicted_score` float32, the probability of the answer among the best spans
    and, if the model may leave questions unanswered, no answer; `predicted_null_odds` float32, the
    null score minus that of the best span; `predicted_nbest` string, JSON of the ranked candidates.

    Args:
        model: built `BertQuestionAnswerer` with its weights, float32.
        tokenizer: its tokenizer.
        lengths: limits in tokens.
        rules: rules for no answer and for spans within a sentence.
    """

    input_names: ClassVar[tuple[str, ...]] = ("question", "context")

    def __init__(
        self, model: Any, tokenizer: WordPieceTokenizer, lengths: AnswerLengths, rules: AnswerRules
    ):
        super().__init__(model, tokenizer, lengths.max_seq_length)
        self._lengths = lengths
        self._rules = rules

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        lengths = self._lengths
        contexts = texts["context"]
        question_tokens = self.tokenizer.tokenize(texts["question"])[:, : lengths.max_query_length]
        tokens, starts, ends = self.tokenizer.tokenize_with_offsets(contexts)
        rows = window_rows(
            question_tokens,
            tokens,
            max_seq_length=lengths.max_seq_length,
            doc_stride=lengths.doc_stride,
            tokenizer=self.tokenizer,
        )
        first, last, score, null = self._span_scores(rows, batch_tokens)
        spans = rank_spans(
            rows.question,
            first + rows.start[:, None],
            last + rows.start[:, None],
            score,
            max_answer_length=lengths.max_answer_length,
            n_best=lengths.n_best_size,
        )
        null = tf.math.unsorted_segment_min(
            tf.cast(null, tf.float64), rows.question, tf.size(contexts)
        )
        answer_texts = _span_texts(spans, contexts, starts, ends)
        return choose_answers(spans, answer_texts, null, self._rules)

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return span_logits(self.model, batch, training=False, dropout_key=None)

    def _span_scores(
        self, rows: WindowRows, batch_tokens: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Score the spans of each window.

        Returns:
            First token, last token and score of each window's best spans, and its score of no
            answer.
        """
        lengths = self._lengths
        best = lengths.n_best_size

        def score(batch: dict[str, tf.Tensor], chosen: tf.Tensor) -> tuple[tf.Tensor, ...]:
            outputs = self.head_outputs(batch)
            start = outputs["start_logits"]
            end = outputs["end_logits"]
            spans = window_spans(
                start,
                end,
                tf.gather(rows.context_begin, chosen),
                tf.gather(rows.length, chosen),
                max_answer_length=lengths.max_answer_length,
                n_best=best,
            )
            return (*spans, start[:, 0] + end[:, 0])

        return self.over_rows(
            score,
            rows[:2],
            batch_tokens,
            tf.TensorSpec([best], tf.int32),
            tf.TensorSpec([best], tf.int32),
            tf.TensorSpec([best], tf.float32),
            tf.TensorSpec([], tf.float32),
        )
