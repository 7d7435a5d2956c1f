"""Texts to rows of tokens with TensorFlow's tokenizer, and `pack_texts` for exported graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.config.sections.finetuning import HEAD, HEAD_TAIL, WINDOWS
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import OVERLAP, head_length, pack_host_pairs, pack_host_texts
from bert_tf.data.text.host_wordpiece import Tokens
from bert_tf.data.text.wordpiece import WordPieceTokenizer, pack_pairs, token_ranges

_SPECIALS = 2
_BATCH_TEXTS = 4096


class Sequences(NamedTuple):
    word_ids: tf.RaggedTensor  # ragged int32 [sequences, (at most max_seq_length)]
    type_ids: tf.RaggedTensor  # ragged int32 [sequences, (at most max_seq_length)]
    owners: tf.Tensor  # int32 [sequences], the text of each, ascending; every text has a sequence
    lost_tokens: tf.Tensor  # int32 [texts], tokens of each that no sequence has


def pack_texts(
    tokens: tf.RaggedTensor, *, method: str, max_seq_length: int, tokenizer: WordPieceTokenizer
) -> Sequences:
    """Make one or several sequences of each text, ids int32 [texts, (tokens)].

    - `head`: the first tokens.
    - `head-tail`: the first and the last tokens, 128 to 382 of them as in Sun et al. 2019 ("How to
      Fine-Tune BERT for Text Classification?"), in proportion for other lengths.
    - `windows`: all tokens; each window overlaps the next by a quarter, the last one by more, so
      that it is as long as the others.
    """
    owners = tf.range(tokens.nrows(out_type=tf.int32))
    lengths = tf.cast(tokens.row_lengths(), tf.int32)
    capacity = max_seq_length - _SPECIALS
    if method == HEAD_TAIL:
        tokens = _heads_and_tails(tokens, capacity)
    elif method == WINDOWS:
        tokens, owners = _windows(tokens, capacity)
    word_ids, type_ids = pack_pairs(
        tokens, None, max_seq_length=max_seq_length, tokenizer=tokenizer
    )
    if method == WINDOWS:
        lost_tokens = tf.zeros_like(lengths)
    else:
        lost_tokens = lengths + _SPECIALS - tf.cast(word_ids.row_lengths(), tf.int32)
    return Sequences(word_ids, type_ids, owners, lost_tokens)


def _heads_and_tails(tokens: tf.RaggedTensor, capacity: int) -> tf.RaggedTensor:
    head = head_length(capacity)
    starts, lengths = tokens.row_starts(), tokens.row_lengths()
    fits = lengths <= capacity
    heads = token_ranges(tokens, starts, tf.where(fits, lengths, head))
    tail = tf.where(fits, tf.zeros_like(lengths), capacity - head)
    return tf.concat([heads, token_ranges(tokens, starts + lengths - tail, tail)], axis=1)


def _windows(tokens: tf.RaggedTensor, capacity: int) -> tuple[tf.RaggedTensor, tf.Tensor]:
    step = capacity - capacity // OVERLAP
    starts, lengths = tokens.row_starts(), tokens.row_lengths()
    beyond_first = tf.maximum(lengths - capacity, 0)
    counts = 1 + (beyond_first + step - 1) // step
    owners = tf.repeat(tf.range(tf.size(counts)), counts)
    number = tf.ragged.range(counts).flat_values  # of a window among those of its text
    first = tf.minimum(number * step, tf.gather(beyond_first, owners))
    starts = tf.gather(starts, owners) + first
    return token_ranges(tokens, starts, tf.gather(tf.minimum(lengths, capacity), owners)), owners


def encode_texts(
    tokenizer: WordPieceTokenizer,
    first: Sequence[str],
    second: Sequence[str] | None,
    *,
    max_seq_length: int,
) -> EncodedRows:
    if second is None:
        return encode_long_texts(tokenizer, first, method=HEAD, max_seq_length=max_seq_length)
    return pack_host_pairs(
        _tokens(tokenizer, first),
        _tokens(tokenizer, second),
        max_seq_length=max_seq_length,
        tokenizer=tokenizer,
    )


def encode_long_texts(
    tokenizer: WordPieceTokenizer, texts: Sequence[str], *, method: str, max_seq_length: int
) -> EncodedRows:
    """Tokenize texts and pack them by one of the methods of `pack_texts`."""
    tokens = _tokens(tokenizer, texts)
    return pack_host_texts(
        tokens, method=method, max_seq_length=max_seq_length, tokenizer=tokenizer
    )


def _tokens(tokenizer: WordPieceTokenizer, texts: Sequence[str]) -> Tokens:
    ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    for begin in range(0, len(texts), _BATCH_TEXTS):
        tokens = tokenizer.tokenize(tf.constant(texts[begin : begin + _BATCH_TEXTS], tf.string))
        ids.append(tokens.flat_values.numpy())
        lengths.append(tokens.row_lengths().numpy())
    return Tokens(np.concatenate(ids), offsets_of(np.concatenate(lengths)))
