"""`bert_tf.data.rows.windows` as graph operations: rows of questions and parts of contexts."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer


class WindowRows(NamedTuple):
    """The rows of all windows.

    Attributes:
        word_ids, type_ids: ragged int32 [windows, (tokens)].
        question: int32 [windows], which question, ascending.
        start: int32 [windows], first token of the context in the window.
        length: int32 [windows], tokens of the context in the window.
        context_begin: int32 [windows], where in the row the context begins.
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
    """`bert_tf.data.rows.windows.context_windows` in a graph.

    Args:
        context_lengths, question_lengths: int32 [questions], in tokens.
        max_seq_length, doc_stride: in tokens.

    Returns:
        question, start and length, int32 [windows].
    """
    capacity = max_seq_length - 3 - question_lengths
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
    """Builds `[CLS] question [SEP] part of the context [SEP]` for every window.

    Args:
        questions: ragged int32 [questions, (tokens)], already cut.
        contexts: ragged int32 [questions, (tokens)].
        max_seq_length, doc_stride: in tokens.
        tokenizer: knows the ids of [CLS] and [SEP].
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
    asked = tf.gather(questions, question)
    cls = tf.fill([tf.size(question), 1], tokenizer.cls_id)
    sep = tf.fill([tf.size(question), 1], tokenizer.sep_id)
    left, right = tf.concat([cls, asked, sep], axis=1), tf.concat([part, sep], axis=1)
    return WindowRows(
        word_ids=tf.concat([left, right], axis=1),
        type_ids=tf.concat([tf.zeros_like(left), tf.ones_like(right)], axis=1),
        question=question,
        start=start,
        length=length,
        context_begin=tf.gather(question_lengths, question) + 2,
    )
