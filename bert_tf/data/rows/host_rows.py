"""Tokens to rows in NumPy; `pack_texts` and `pack_pairs` do the same in exported graphs."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.config.sections.finetuning import HEAD, HEAD_TAIL, WINDOWS
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.text.host_wordpiece import Tokenizer, Tokens

OVERLAP = 4  # a window shares one of so many parts with the next
_HEAD_OF = (128, 510)  # tokens that are of the head (Sun et al. 2019, section 5.3.1)
_SPECIALS, _SPECIALS_OF_PAIR = 2, 3

# Ids, and of the part of each row the place of its first token and the number of tokens, int [rows]
Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


def pack_host_texts(
    tokens: Tokens, *, method: str = HEAD, max_seq_length: int, tokenizer: Tokenizer
) -> EncodedRows:
    capacity = max_seq_length - _SPECIALS
    starts, lengths = tokens.offsets[:-1], np.diff(tokens.offsets)
    owners = None
    kept_lengths = np.minimum(lengths, capacity)
    if method == WINDOWS:
        owners, first = _windows(lengths, capacity)
        starts, kept_lengths = starts[owners] + first, kept_lengths[owners]
    places = flat_ranges(starts, kept_lengths)
    if method == HEAD_TAIL:
        tails = np.where(lengths > capacity, capacity - head_length(capacity), 0)
        parts = np.stack([kept_lengths - tails, tails], axis=1)
        begins = np.stack([starts, starts + lengths - tails], axis=1)
        places = flat_ranges(begins.ravel(), parts.ravel())
    kept = tokens.ids[places]
    offsets = offsets_of(kept_lengths + _SPECIALS)
    return EncodedRows(
        ids=between_specials(kept, offsets, tokenizer),
        offsets=offsets,
        second_starts=np.diff(offsets).astype(np.int32),
        lost_tokens=np.zeros(len(kept_lengths), np.int64)
        if method == WINDOWS
        else lengths - kept_lengths,
        owners=owners,
    )


def pack_host_pairs(
    first: Tokens, second: Tokens, *, max_seq_length: int, tokenizer: Tokenizer
) -> EncodedRows:
    lengths = np.stack([np.diff(first.offsets), np.diff(second.offsets)], axis=1)
    kept = longest_first(lengths, capacity=max_seq_length - _SPECIALS_OF_PAIR)
    rows = pair_rows(
        (first.ids, first.offsets[:-1], kept[:, 0]),
        (second.ids, second.offsets[:-1], kept[:, 1]),
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
    )
    return dataclasses.replace(rows, lost_tokens=(lengths - kept).sum(axis=1))


def pair_rows(first: Parts, second: Parts, *, cls_id: int, sep_id: int) -> EncodedRows:
    """Build rows `[CLS] a [SEP] b [SEP]` of parts of tokens."""
    seconds = first[2] + _SPECIALS
    offsets = offsets_of(seconds + second[2] + 1)
    ids = np.full(offsets[-1], sep_id, np.int32)
    ids[offsets[:-1]] = cls_id
    for place, (tokens, begins, lengths) in ((1, first), (seconds, second)):
        ids[flat_ranges(offsets[:-1] + place, lengths)] = tokens[flat_ranges(begins, lengths)]
    return EncodedRows(ids=ids, offsets=offsets, second_starts=seconds.astype(np.int32))


def selected_tokens(tokens: Tokens, texts: np.ndarray) -> Tokens:
    lengths = np.diff(tokens.offsets)[texts]
    kept = flat_ranges(tokens.offsets[:-1][texts], lengths)
    return Tokens(tokens.ids[kept], offsets_of(lengths))


def head_length(capacity: int) -> int:
    kept, whole = _HEAD_OF
    return round(capacity * kept / whole)


def _windows(lengths: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """The text of each window, and which of its tokens the window begins with, int64."""
    step = capacity - capacity // OVERLAP
    beyond_first = np.maximum(lengths - capacity, 0)
    counts = 1 + -(-beyond_first // step)
    owners = np.repeat(np.arange(len(lengths)), counts)
    numbers = flat_ranges(np.zeros(len(counts), np.int64), counts)
    return owners, np.minimum(numbers * step, beyond_first[owners])


def longest_first(lengths: np.ndarray, *, capacity: int) -> np.ndarray:
    """`longest_first_lengths` in NumPy: lengths int64 [n, 2] to those that are kept."""
    shorter, longer = lengths.min(axis=1), lengths.max(axis=1)
    half = capacity // 2
    both_cut = shorter > half
    fits = shorter + longer <= capacity
    kept_shorter = np.where(both_cut & ~fits, half, shorter)
    kept_longer = np.where(fits, longer, capacity - kept_shorter)
    kept = np.stack([kept_shorter, kept_longer], axis=1)
    return np.where((lengths[:, 0] > lengths[:, 1])[:, None], kept[:, ::-1], kept)


def between_specials(kept: np.ndarray, offsets: np.ndarray, tokenizer: Tokenizer) -> np.ndarray:
    """Put [CLS] before and [SEP] after the tokens of each row."""
    ids = np.empty(offsets[-1], np.int32)
    is_kept = np.ones(len(ids), bool)
    firsts, lasts = offsets[:-1], offsets[1:] - 1
    is_kept[firsts] = is_kept[lasts] = False
    ids[firsts], ids[lasts], ids[is_kept] = tokenizer.cls_id, tokenizer.sep_id, kept
    return ids
