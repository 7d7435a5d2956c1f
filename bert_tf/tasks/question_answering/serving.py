"""Question answering over contexts of any length inside one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.question_answering.graph.choice_graph import SpanTexts, choose_answers
from bert_tf.tasks.question_answering.graph.span_graph import RankedSpans, rank_spans, window_spans
from bert_tf.tasks.question_answering.graph.window_graph import WindowRows, window_rows
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING

if TYPE_CHECKING:
    from bert_tf.tasks.question_answering.task import QuestionAnsweringTask


class QuestionAnswerer(TextModule):
    """`question` and `context` to the answer, by the rules of `answer_spans` and `answer_choice`.

    Outputs, all [n]: `predicted_answer` string, a slice of the context, empty for no answer;
    `predicted_start` and `predicted_end` int32, characters (code points) of the context as given,
    -1 for no answer; `predicted_score` float32, the probability of the answer (or of there being
    none) among the best spans and, if the model may leave questions unanswered, no answer;
    `predicted_null_odds` float32, the null score minus that of the best span; `predicted_nbest`
    string, JSON of the ranked candidates.

    Args:
        task: lengths and rules.
        model: built Keras model with its weights, float32.
        tokenizer: the model's.
    """

    input_names: ClassVar[tuple[str, ...]] = QUESTION_ANSWERING.inputs

    def __init__(self, task: QuestionAnsweringTask, model: Any, tokenizer: WordPieceTokenizer):
        super().__init__(model, tokenizer)
        self._task = task

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `TextModule.predict`."""
        task, contexts = self._task, texts["context"]
        asked = self.tokenizer.tokenize(texts["question"])[:, : task.max_query_length]
        tokens, starts, ends = self.tokenizer.tokenize_with_offsets(contexts)
        rows = window_rows(
            asked,
            tokens,
            max_seq_length=task.max_seq_length,
            doc_stride=task.doc_stride,
            tokenizer=self.tokenizer,
        )
        first, last, score, null = self._span_scores(rows, batch_tokens)
        spans = rank_spans(
            rows.question,
            first + rows.start[:, None],
            last + rows.start[:, None],
            score,
            max_answer_length=task.max_answer_length,
            n_best=task.n_best_size,
        )
        null = tf.math.unsorted_segment_min(
            tf.cast(null, tf.float64), rows.question, tf.size(contexts)
        )
        chosen = choose_answers(spans, _span_texts(spans, contexts, starts, ends), null, task.rules)
        return {
            "predicted_answer": chosen.text,
            "predicted_start": chosen.start,
            "predicted_end": chosen.end,
            "predicted_score": tf.cast(chosen.probability, tf.float32),
            "predicted_null_odds": tf.cast(chosen.null_odds, tf.float32),
            "predicted_nbest": chosen.nbest,
        }

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """`start_logits` and `end_logits`, float32 [n, length], far below zero on padding."""
        return self._task.outputs(self.model, batch, training=False, dropout_key=None)

    def _span_scores(
        self, rows: WindowRows, batch_tokens: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """First, last and score of each window's best spans, and its score of no answer."""
        task = self._task

        def score(batch: dict[str, tf.Tensor], chosen: tf.Tensor) -> tuple[tf.Tensor, ...]:
            outputs = self.head_outputs(batch)
            start, end = outputs["start_logits"], outputs["end_logits"]
            spans = window_spans(
                start,
                end,
                tf.gather(rows.context_begin, chosen),
                tf.gather(rows.length, chosen),
                max_answer_length=task.max_answer_length,
                n_best=task.n_best_size,
            )
            return (*spans, start[:, 0] + end[:, 0])

        best = task.n_best_size
        return map_row_batches(
            score,
            rows.word_ids,
            rows.type_ids,
            batch_tokens=batch_tokens,
            pad_id=self.tokenizer.pad_id,
            outputs=(
                tf.TensorSpec([best], tf.int32),
                tf.TensorSpec([best], tf.int32),
                tf.TensorSpec([best], tf.float32),
                tf.TensorSpec([], tf.float32),
            ),
        )


def _span_texts(
    spans: RankedSpans, contexts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor
) -> SpanTexts:
    """The slices of the contexts that spans cover, from the byte offsets of the tokens."""
    texts = tf.gather(contexts, spans.question)
    first_tokens = tf.gather(starts.row_starts(), spans.question)
    begin = tf.gather(starts.flat_values, first_tokens + tf.cast(spans.first, tf.int64))
    end = tf.gather(ends.flat_values, first_tokens + tf.cast(spans.last, tf.int64))
    text = tf.strings.substr(texts, begin, end - begin)
    before = tf.strings.length(
        tf.strings.substr(texts, tf.zeros_like(begin), begin), unit="UTF8_CHAR"
    )
    return SpanTexts(text, before, before + tf.strings.length(text, unit="UTF8_CHAR"))
