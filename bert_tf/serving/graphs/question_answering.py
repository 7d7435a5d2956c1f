"""Question answering over contexts of any length, inside one graph.

A context is read in overlapping windows (`window_rows`), and `answers` chooses among the spans of
all windows. The method is that of google-research/bert run_squad.py (Devlin et al. 2019, sections
4.2 and 4.3). The same steps in NumPy are in `bert_tf.data.rows.windows` and the task's host.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from bert_tf.data.rows.windows import SPECIALS_BEFORE_CONTEXT
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.graphs.answers import choose_answers, rank_spans, span_texts, window_spans
from bert_tf.serving.signatures import FAR_BELOW, AnswerLengths, AnswerRules
from bert_tf.serving.text_module import TextModule


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
        answer_texts = span_texts(spans, contexts, starts, ends)
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
