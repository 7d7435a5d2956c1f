"""Texts to rows of tokens, in TensorFlow; without it: `host_rows`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.config.sections.finetuning import HEAD, WINDOWS
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.long_texts import pack_texts
from bert_tf.data.text.wordpiece import WordPieceTokenizer, pack_pairs

_BATCH_TEXTS = 4096


def encode_texts(
    tokenizer: WordPieceTokenizer,
    first: Sequence[str],
    second: Sequence[str] | None,
    *,
    max_seq_length: int,
) -> EncodedRows:
    """Tokenizes single texts or pairs and packs each into a row of at most `max_seq_length`."""
    ids, lengths, second_starts, lost_tokens = [], [], [], []
    for begin in range(0, len(first), _BATCH_TEXTS):
        chosen = slice(begin, begin + _BATCH_TEXTS)
        texts = [
            tokenizer.tokenize(tf.constant(column[chosen], tf.string))
            for column in (first, second)
            if column is not None
        ]
        word_ids, type_ids = pack_pairs(
            texts[0],
            None if second is None else texts[1],
            max_seq_length=max_seq_length,
            tokenizer=tokenizer,
        )
        whole_lengths = sum(text.row_lengths().numpy() for text in texts) + len(texts) + 1
        row_lengths = word_ids.row_lengths().numpy()
        ids.append(word_ids.flat_values.numpy())
        lengths.append(row_lengths)
        lost_tokens.append(whole_lengths - row_lengths)
        second_starts.append(row_lengths - tf.reduce_sum(type_ids, axis=1).numpy())
    return EncodedRows(
        ids=np.concatenate(ids) if ids else np.zeros(0, np.int32),
        offsets=offsets_of(np.concatenate(lengths) if lengths else np.zeros(0, np.int64)),
        second_starts=np.concatenate(second_starts).astype(np.int32)
        if second_starts
        else np.zeros(0, np.int32),
        lost_tokens=np.concatenate(lost_tokens) if lost_tokens else np.zeros(0, np.int64),
    )


def encode_long_texts(
    tokenizer: WordPieceTokenizer, texts: Sequence[str], *, method: str, max_seq_length: int
) -> EncodedRows:
    """Tokenizes texts and makes rows of them by one of the methods of `pack_texts`."""
    if method == HEAD:
        return encode_texts(tokenizer, texts, None, max_seq_length=max_seq_length)
    ids, lengths, owners, lost_tokens = [], [], [], []
    for begin in range(0, len(texts), _BATCH_TEXTS):
        tokens = tokenizer.tokenize(tf.constant(texts[begin : begin + _BATCH_TEXTS], tf.string))
        rows = pack_texts(tokens, method=method, max_seq_length=max_seq_length, tokenizer=tokenizer)
        row_lengths = rows.word_ids.row_lengths().numpy()
        ids.append(rows.word_ids.flat_values.numpy())
        lengths.append(row_lengths)
        owners.append(rows.owners.numpy().astype(np.int64) + begin)
        lost_tokens.append(
            np.zeros(len(row_lengths), np.int64)
            if method == WINDOWS
            else rows.lost_tokens.numpy().astype(np.int64)
        )
    offsets = offsets_of(np.concatenate(lengths))
    return EncodedRows(
        ids=np.concatenate(ids),
        offsets=offsets,
        second_starts=np.diff(offsets).astype(np.int32),
        lost_tokens=np.concatenate(lost_tokens),
        owners=np.concatenate(owners) if method == WINDOWS else None,
    )
