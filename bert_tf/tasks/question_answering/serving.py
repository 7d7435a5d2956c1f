"""Question answering over contexts of any length inside one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.question_answering.answer_graph import choose_spans, rank_spans, window_spans
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING

if TYPE_CHECKING:
    from bert_tf.tasks.question_answering.task import QuestionAnsweringTask
from bert_tf.tasks.question_answering.window_graph import WindowRows, window_rows


class QuestionAnswerer(TextModule):
    """`question` and `context` to the answer, by the rules of `answer_spans`.

    Outputs, all [n]: `predicted_answer` string, a slice of the context, empty for no answer;
    `predicted_start` and `predicted_end` int32, characters (code points) of the context as given,
    -1 for no answer; `predicted_score` float32, the probability of the answer (or of there being
    none) among the best spans and, if the model may leave questions unanswered, no answer.

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
        questions = tf.size(contexts)
        chosen = choose_spans(
            spans,
            tf.math.unsorted_segment_min(tf.cast(null, tf.float64), rows.question, questions),
            may_be_unanswerable=task.may_be_unanswerable,
            null_threshold=task.null_score_diff_threshold,
        )
        begin = _at(starts, chosen.first, chosen.is_answered)
        end = _at(ends, chosen.last, chosen.is_answered)
        no_place = tf.fill([questions], -1)
        return {
            "predicted_answer": tf.strings.substr(contexts, begin, end - begin),
            "predicted_start": tf.where(
                chosen.is_answered, _characters_before(contexts, begin), no_place
            ),
            "predicted_end": tf.where(
                chosen.is_answered, _characters_before(contexts, end), no_place
            ),
            "predicted_score": tf.cast(chosen.probability, tf.float32),
        }

    def _span_scores(
        self, rows: WindowRows, batch_tokens: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """First, last and score of each window's best spans, and its score of no answer."""
        task = self._task

        def score(batch: dict[str, tf.Tensor], chosen: tf.Tensor) -> tuple[tf.Tensor, ...]:
            outputs = task.outputs(self.model, batch, training=False, dropout_key=None)
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


def _at(offsets: tf.RaggedTensor, tokens: tf.Tensor, is_there: tf.Tensor) -> tf.Tensor:
    """The offset of one token of each row, int64 [rows]; 0 where there is none."""
    flat = tf.concat([offsets.flat_values, tf.zeros([1], tf.int64)], 0)
    place = tf.where(is_there, offsets.row_starts() + tf.cast(tokens, tf.int64), 0)
    return tf.where(is_there, tf.gather(flat, place), 0)


def _characters_before(texts: tf.Tensor, byte_offsets: tf.Tensor) -> tf.Tensor:
    """Code points in the first bytes of each text, int32 [n]."""
    heads = tf.strings.substr(texts, tf.zeros_like(byte_offsets), byte_offsets)
    return tf.strings.length(heads, unit="UTF8_CHAR")
