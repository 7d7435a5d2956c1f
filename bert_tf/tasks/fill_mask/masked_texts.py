"""Texts with masks as tokens, inside a graph: a sequence for every mask."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.fill_mask.declaration import MASK


class MaskedTexts(NamedTuple):
    """Texts cut at their masks, and their tokens.

    Attributes:
        parts: string [n, (masks + 1)], the text before, between and after the masks.
        tokens: int32 [n, (tokens)], the masks among them.
        mask_rows: int64 [masks], the text of each mask, ascending.
        mask_positions: int64 [masks], its place among the tokens of its text.
    """

    parts: tf.RaggedTensor
    tokens: tf.RaggedTensor
    mask_rows: tf.Tensor
    mask_positions: tf.Tensor


def is_before_mask(parts: tf.RaggedTensor) -> tf.Tensor:
    """Whether a mask follows each part of a text, bool [parts of all texts]: all but the last."""
    lasts = tf.gather(parts.row_limits() - 1, parts.value_rowids())
    return tf.range(tf.size(lasts, tf.int64)) != lasts


def split_at_masks(texts: tf.Tensor, tokenizer: WordPieceTokenizer) -> MaskedTexts:
    """Tokenizes texts, string [n], in which [MASK] is a token, as HuggingFace's tokenizers do.

    The text around it is tokenized apart from it, so it survives lower-casing and splits words.
    """
    parts = tf.strings.split(texts, MASK)
    is_mask = is_before_mask(parts)
    after = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.math.count_nonzero(is_mask)], tokenizer.mask_id), tf.cast(is_mask, tf.int64)
    )
    pieces = tf.concat([tokenizer.tokenize(parts.flat_values), after], axis=1)
    tokens = tf.RaggedTensor.from_row_splits(
        pieces.flat_values, tf.gather(pieces.row_splits, parts.row_splits)
    )
    mask_rows = tf.boolean_mask(parts.value_rowids(), is_mask)
    ends = tf.boolean_mask(pieces.row_limits(), is_mask)
    positions = ends - 1 - tf.gather(tokens.row_starts(), mask_rows)
    return MaskedTexts(parts, tokens, mask_rows, positions)


def mask_sequences(
    masked: MaskedTexts, *, max_seq_length: int, tokenizer: WordPieceTokenizer
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """A sequence for each mask: all tokens of its text if they fit, otherwise those around it.

    Returns:
        Word ids, ragged int32 [masks, (tokens)], and the mask's position, int32 [masks].
    """
    capacity = max_seq_length - 2
    lengths = tf.gather(masked.tokens.row_lengths(), masked.mask_rows)
    begins = tf.minimum(masked.mask_positions - capacity // 2, lengths - capacity)
    begins = tf.maximum(begins, 0)
    starts = tf.gather(masked.tokens.row_starts(), masked.mask_rows) + begins
    kept = tf.gather(
        masked.tokens.flat_values, tf.ragged.range(starts, starts + tf.minimum(lengths, capacity))
    )
    ends = tf.ones_like(lengths, tf.int32)[:, None]
    word_ids = tf.concat([ends * tokenizer.cls_id, kept, ends * tokenizer.sep_id], axis=1)
    return word_ids, tf.cast(masked.mask_positions - begins, tf.int32) + 1
