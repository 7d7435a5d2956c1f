"""Rows from tokens in NumPy; `pack_texts` and `pack_pairs` do the same in exported graphs."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.config.sections.finetuning import HEAD, HEAD_TAIL, WINDOWS
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.text.host_wordpiece import Tokenizer, Tokens
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR, SPECIALS_OF_TEXT

OVERLAP = 4  # a window shares a quarter of its tokens with the next
# A text that is too long keeps 128 of 510 tokens from its head (Sun et al. 2019, section 5.3.1).
_HEAD_TOKENS = 128
_HEAD_AND_TAIL_TOKENS = 510


class TokenRanges(NamedTuple):
    """A range of tokens for each row.

    Attributes:
        ids: int32 [tokens].
        starts: int [rows], place in `ids` of the first token.
        lengths: int [rows], number of tokens.
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def pack_host_texts(
    tokens: Tokens, *, method: str = HEAD, max_seq_length: int, tokenizer: Tokenizer
) -> EncodedRows:
    """Build one row `[CLS] text [SEP]` of each text, or several; `pack_texts` in NumPy.

    Args:
        tokens: tokens of the texts.
        method: the part of too long texts to keep: HEAD, HEAD_TAIL (a quarter from the head,
            the rest from the tail), or WINDOWS (everything, in overlapping rows).
        max_seq_length: tokens of a row, including special tokens.
        tokenizer: has the ids of [CLS] and [SEP].
    """
    capacity = max_seq_length - SPECIALS_OF_TEXT
    starts = tokens.offsets[:-1]
    lengths = np.diff(tokens.offsets)
    owners = None
    kept_lengths = np.minimum(lengths, capacity)
    if method == WINDOWS:
        owners, first = _windows(lengths, capacity)
        starts = starts[owners] + first
        kept_lengths = kept_lengths[owners]
        lost_tokens = np.zeros(len(kept_lengths), np.int64)
    else:
        lost_tokens = lengths - kept_lengths
    places = flat_ranges(starts, kept_lengths)
    if method == HEAD_TAIL:
        # Two ranges per text: the head, and the tail, which is empty if the text fits.
        tails = np.where(lengths > capacity, capacity - head_length(capacity), 0)
        parts = np.stack([kept_lengths - tails, tails], axis=1)
        begins = np.stack([starts, starts + lengths - tails], axis=1)
        places = flat_ranges(begins.ravel(), parts.ravel())
    kept = tokens.ids[places]
    offsets = offsets_of(kept_lengths + SPECIALS_OF_TEXT)
    return EncodedRows(
        ids=between_specials(kept, offsets, tokenizer),
        offsets=offsets,
        second_starts=np.diff(offsets).astype(np.int32),
        lost_tokens=lost_tokens,
        owners=owners,
    )


def pack_host_pairs(
    first: Tokens,
    second: Tokens,
    *,
    max_seq_length: int,
    tokenizer: Tokenizer,
    is_second_optional: bool = False,
) -> EncodedRows:
    """Build a row `[CLS] first [SEP] second [SEP]` of each pair of texts; `pack_pairs` in NumPy.

    Args:
        first, second: tokens of the texts.
        max_seq_length: tokens of a row, including special tokens; longer pairs are cut by
            `longest_first`.
        tokenizer: has the ids of [CLS] and [SEP].
        is_second_optional: rows without tokens of the second text become `[CLS] first [SEP]`.
    """
    lengths = np.stack([np.diff(first.offsets), np.diff(second.offsets)], axis=1)
    kept = longest_first(lengths, capacity=max_seq_length - SPECIALS_OF_PAIR)
    if is_second_optional:
        capacity = max_seq_length - SPECIALS_OF_TEXT
        kept[:, 0] = np.where(lengths[:, 1] == 0, np.minimum(lengths[:, 0], capacity), kept[:, 0])
    rows = pair_rows(
        TokenRanges(first.ids, first.offsets[:-1], kept[:, 0]),
        TokenRanges(second.ids, second.offsets[:-1], kept[:, 1]),
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        ends_second=lengths[:, 1] > 0 if is_second_optional else True,
    )
    return dataclasses.replace(rows, lost_tokens=(lengths - kept).sum(axis=1))


def pair_rows(
    first: TokenRanges,
    second: TokenRanges,
    *,
    cls_id: int,
    sep_id: int,
    ends_second: np.ndarray | bool = True,
) -> EncodedRows:
    """Build rows `[CLS] first [SEP] second [SEP]`.

    Args:
        first, second: tokens of each row.
        cls_id, sep_id: ids of [CLS] and [SEP].
        ends_second: bool [rows] or one for all, whether a row has the last [SEP].
    """
    second_starts = first.lengths + SPECIALS_OF_TEXT
    offsets = offsets_of(second_starts + second.lengths + ends_second)
    row_starts = offsets[:-1]
    ids = np.full(offsets[-1], sep_id, np.int32)
    ids[row_starts] = cls_id
    _copy_ranges(first, ids, row_starts + 1)
    _copy_ranges(second, ids, row_starts + second_starts)
    return EncodedRows(ids=ids, offsets=offsets, second_starts=second_starts.astype(np.int32))


def _copy_ranges(ranges: TokenRanges, ids: np.ndarray, places: np.ndarray) -> None:
    """Copy each range to its place in `ids`."""
    sources = flat_ranges(ranges.starts, ranges.lengths)
    ids[flat_ranges(places, ranges.lengths)] = ranges.ids[sources]


def head_length(capacity: int) -> int:
    """Return the tokens that HEAD_TAIL keeps from the head, if a row has `capacity` for text."""
    return round(capacity * _HEAD_TOKENS / _HEAD_AND_TAIL_TOKENS)


def _windows(lengths: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the text of each window, and the number of its first token there, int64 both.

    The last window of a text begins earlier if needed, so that it is full.
    """
    step = capacity - capacity // OVERLAP
    beyond_first = np.maximum(lengths - capacity, 0)
    counts = 1 + -(-beyond_first // step)
    owners = np.repeat(np.arange(len(lengths)), counts)
    numbers = flat_ranges(np.zeros(len(counts), np.int64), counts)
    return owners, np.minimum(numbers * step, beyond_first[owners])


def longest_first(lengths: np.ndarray, *, capacity: int) -> np.ndarray:
    """Cut lengths of pairs like HuggingFace's `longest_first`; `longest_first_lengths` in NumPy.

    Args:
        lengths: int64 [n, 2], lengths of both texts.
        capacity: most tokens of both together.

    Returns:
        int64 [n, 2], lengths to keep.
    """
    shorter = lengths.min(axis=1)
    longer = lengths.max(axis=1)
    half = capacity // 2
    both_cut = shorter > half
    fits = shorter + longer <= capacity
    kept_shorter = np.where(both_cut & ~fits, half, shorter)
    kept_longer = np.where(fits, longer, capacity - kept_shorter)
    kept = np.stack([kept_shorter, kept_longer], axis=1)
    return np.where((lengths[:, 0] > lengths[:, 1])[:, None], kept[:, ::-1], kept)


def between_specials(kept: np.ndarray, offsets: np.ndarray, tokenizer: Tokenizer) -> np.ndarray:
    """Put [CLS] before and [SEP] after the tokens of each row.

    Args:
        kept: int32, tokens of all rows.
        offsets: int64 [rows + 1], offsets of the rows with their special tokens.
        tokenizer: has the ids of [CLS] and [SEP].
    """
    ids = np.empty(offsets[-1], np.int32)
    firsts = offsets[:-1]
    lasts = offsets[1:] - 1
    is_kept = np.ones(len(ids), bool)
    is_kept[firsts] = False
    is_kept[lasts] = False
    ids[firsts] = tokenizer.cls_id
    ids[lasts] = tokenizer.sep_id
    ids[is_kept] = kept
    return ids
