"""Texts as rows of tokens with the characters that each token covers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.text.host_wordpiece import characters_at_bytes
from bert_tf.data.text.wordpiece import WordPieceTokenizer

_SPECIALS = 2  # [CLS] and [SEP]
_BATCH_TEXTS = 4096


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenRows:
    """Texts ready for an encoder.

    Attributes:
        rows: `[CLS] tokens [SEP]` of each text, cut to the longest sequence.
        lengths: int64 [texts], tokens of each text with [CLS] and [SEP] before it was cut.
        starts, ends: int64 [tokens of all rows without specials]; the characters (code points) of
            its text that each token covers, ends exclusive.
    """

    rows: EncodedRows
    lengths: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def tokenize_rows(
    tokenizer: WordPieceTokenizer, texts: Sequence[str], *, max_seq_length: int
) -> TokenRows:
    """Tokenizes texts and cuts what is longer than `max_seq_length` tokens, specials included."""
    parts = [
        _tokenize(tokenizer, texts[begin : begin + _BATCH_TEXTS], max_seq_length - _SPECIALS)
        for begin in range(0, max(1, len(texts)), _BATCH_TEXTS)
    ]
    ids, starts, ends, lengths = (
        np.concatenate([part[index] for part in parts]) for index in range(4)
    )
    kept = np.minimum(lengths, max_seq_length - _SPECIALS)
    offsets = offsets_of(kept + _SPECIALS)
    row_ids = np.empty(offsets[-1], np.int32)
    row_ids[offsets[:-1]] = tokenizer.cls_id
    row_ids[offsets[1:] - 1] = tokenizer.sep_id
    row_ids[flat_ranges(offsets[:-1] + 1, kept)] = ids
    rows = EncodedRows(
        ids=row_ids, offsets=offsets, second_starts=np.diff(offsets).astype(np.int32)
    )
    return TokenRows(rows=rows, lengths=lengths + _SPECIALS, starts=starts, ends=ends)


def _tokenize(
    tokenizer: WordPieceTokenizer, texts: Sequence[str], most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ids, first and last characters of the kept tokens, and the number of tokens of each text."""
    encoded = [text.encode() for text in texts]
    ids, starts, ends = tokenizer.tokenize_with_offsets(tf.constant(encoded, tf.string))
    splits = ids.row_splits.numpy()
    lengths = np.diff(splits)
    kept = np.minimum(lengths, most)
    chosen = flat_ranges(splits[:-1], kept)
    owners = np.repeat(np.arange(len(texts)), kept)
    first, last = (
        characters_at_bytes(encoded, owners, values.flat_values.numpy()[chosen])
        for values in (starts, ends)
    )
    return ids.flat_values.numpy()[chosen], first, last, lengths
