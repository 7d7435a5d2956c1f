"""`word_rows` as graph operations: words, windows, and where each word is read."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.tagging.rows.word_rows import CONTINUES, SPECIALS


class GraphWords(NamedTuple):
    """Words of texts and the rows they are read in.

    Attributes:
        word_ids: ragged int32 [windows, (tokens)].
        text: int32 [words], the text of each, ascending.
        start_bytes, end_bytes: int64 [words], byte offsets into the text.
        window: int32 [words], the row that each word is read in.
        position: int32 [words], where in that row its first token is.
    """

    word_ids: tf.RaggedTensor
    text: tf.Tensor
    start_bytes: tf.Tensor
    end_bytes: tf.Tensor
    window: tf.Tensor
    position: tf.Tensor


def graph_words(
    tokenizer: WordPieceTokenizer, texts: tf.Tensor, *, max_seq_length: int, stride: int
) -> GraphWords:
    """Tokenizes texts and cuts them into windows.

    Args:
        tokenizer: the model's.
        texts: UTF-8 string [n].
        max_seq_length: tokens of a row.
        stride: tokens between the starts of two windows.
    """
    tokens, starts, ends = tokenizer.tokenize_with_offsets(texts)
    capacity = max_seq_length - SPECIALS
    step = min(stride, capacity)
    lengths = tf.cast(tokens.row_lengths(), tf.int32)
    counts = 1 + (tf.maximum(lengths - capacity, 0) + step - 1) // step

    continues = tf.constant([entry.startswith(CONTINUES) for entry in tokenizer.vocab])
    begins = ~tf.gather(continues, tokens.flat_values)
    first = tf.cast(tf.where(begins)[:, 0], tf.int32)
    last = tf.concat([first[1:], [tf.size(begins)]], 0)[: tf.size(first)] - 1
    text = tf.cast(tf.gather(tokens.value_rowids(), first), tf.int32)
    place = first - tf.cast(tf.gather(tokens.row_starts(), text), tf.int32)
    nearest = _nearest_windows(
        place, tf.gather(lengths, text), tf.gather(counts, text), capacity=capacity, step=step
    )
    first_window = tf.cumsum(counts, exclusive=True)
    return GraphWords(
        word_ids=_window_rows(tokenizer, tokens, lengths, counts, capacity=capacity, step=step),
        text=text,
        start_bytes=tf.gather(starts.flat_values, first),
        end_bytes=tf.gather(ends.flat_values, last),
        window=tf.gather(first_window, text) + nearest,
        position=1 + place - nearest * step,
    )


def _nearest_windows(
    place: tf.Tensor, lengths: tf.Tensor, counts: tf.Tensor, *, capacity: int, step: int
) -> tf.Tensor:
    """The window of its text in which a token has most context, the first of equals.

    Args:
        place: int32 [n], of the token in its text.
        lengths, counts: int32 [n], tokens and windows of its text.
        capacity, step: tokens of a window, and from one to the next.
    """
    most = -(-capacity // step)  # windows that hold a token
    window = (place // step)[:, None] - tf.range(most - 1, -1, -1)
    begin = window * step
    end = tf.minimum(begin + capacity, lengths[:, None])
    context = tf.minimum(place[:, None] - begin, end - 1 - place[:, None])
    exists = (window >= 0) & (window < counts[:, None])
    best = tf.argmax(tf.where(exists, context, -1), axis=1, output_type=tf.int32)
    return place // step - (most - 1) + best


def _window_rows(
    tokenizer: WordPieceTokenizer,
    tokens: tf.RaggedTensor,
    lengths: tf.Tensor,
    counts: tf.Tensor,
    *,
    capacity: int,
    step: int,
) -> tf.RaggedTensor:
    """`[CLS] window [SEP]` of every window, ragged int32 [windows, (tokens)]."""
    text = tf.repeat(tf.range(tf.size(counts)), counts)
    start = tf.ragged.range(counts).flat_values * step
    length = tf.minimum(capacity, tf.gather(lengths, text) - start)
    begin = tf.gather(tokens.row_starts(), text) + tf.cast(start, tf.int64)
    positions = tf.ragged.range(begin, begin + tf.cast(length, tf.int64))
    cls = tf.fill([tf.size(text), 1], tokenizer.cls_id)
    sep = tf.fill([tf.size(text), 1], tokenizer.sep_id)
    return tf.concat([cls, tf.gather(tokens.flat_values, positions), sep], axis=1)
