"""Turn pairs of segments into rows of ids, and into the features of pretraining records."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.data.examples.masking import MaskingRules, mask_rows
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR, SPECIALS_OF_TEXT


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowFormat:
    """Width and special tokens of a row.

    Attributes:
        max_seq_length: tokens of a row, including [CLS], [SEP] and padding.
        cls_id, sep_id, pad_id: ids of the special tokens.
    """

    max_seq_length: int
    cls_id: int
    sep_id: int
    pad_id: int


def pack_segments(
    tokens: np.ndarray, pairs: np.ndarray, row_format: RowFormat
) -> tuple[np.ndarray, np.ndarray]:
    """Lay pairs out as `[CLS] first [SEP] second [SEP]`, or `[CLS] first [SEP]`, and pad.

    Args:
        tokens: int32 [tokens], ids that the pairs refer to.
        pairs: array of `segments.PAIR`, [rows]; a second segment of length 0 leaves out its [SEP].
        row_format: width and special tokens.

    Returns:
        ids: int32 [rows, length].
        types: int32 [rows, length], 0 up to the first [SEP] and in the padding, 1 after it.
    """
    ids = np.full((len(pairs), row_format.max_seq_length), row_format.pad_id, np.int32)
    types = np.zeros_like(ids)
    cls_id = np.int32(row_format.cls_id)
    sep_id = np.int32(row_format.sep_id)
    _pack_segments(tokens, pairs, cls_id, sep_id, ids, types)
    return ids, types


@numba.njit(cache=True, nogil=True)
def _pack_segments(tokens, pairs, cls_id, sep_id, ids, types):
    """Fill `ids`, which hold padding, and `types`, which hold 0."""
    for row in range(len(pairs)):
        pair = pairs[row]
        ids[row, 0] = cls_id
        border = 1 + pair.first_length
        for i in range(pair.first_length):
            ids[row, 1 + i] = tokens[pair.first_start + i]
        ids[row, border] = sep_id
        if pair.second_length == 0:
            continue
        end = border + 1 + pair.second_length
        for i in range(pair.second_length):
            ids[row, border + 1 + i] = tokens[pair.second_start + i]
        ids[row, end] = sep_id
        for position in range(border + 1, end + 1):
            types[row, position] = 1


def pair_lengths(pairs: np.ndarray) -> np.ndarray:
    """Return the number of tokens of each row, special tokens included: int32 [rows]."""
    specials = np.where(pairs["second_length"] > 0, SPECIALS_OF_PAIR, SPECIALS_OF_TEXT)
    return pairs["first_length"] + pairs["second_length"] + specials.astype(np.int32)


def unmasked_features(
    tokens: np.ndarray, pairs: np.ndarray, begins_word: np.ndarray, row_format: RowFormat
) -> dict[str, np.ndarray]:
    """Return the features of records that are masked when they are read.

    Args:
        tokens: int32 [tokens], ids that the pairs refer to.
        pairs: array of `segments.PAIR`, [rows].
        begins_word: bool [vocabulary], False for tokens that continue a word.
        row_format: width and special tokens.

    Returns:
        input_word_ids: int32 [rows, max_seq_length].
        word_starts: int32 [rows, max_seq_length], 1 where a word begins. The first `pair_lengths`
            positions of a row are tokens.
        next_sentence_labels: int32 [rows, 1], labels of the pairs.
    """
    ids, _ = pack_segments(tokens, pairs, row_format)
    return {
        "input_word_ids": ids,
        "word_starts": begins_word[ids].astype(np.int32),
        "next_sentence_labels": pairs["label"].astype(np.int32)[:, None],
    }


def pretraining_features(
    tokens: np.ndarray,
    pairs: np.ndarray,
    rules: MaskingRules,
    row_format: RowFormat,
    *,
    max_predictions_per_seq: int,
) -> dict[str, np.ndarray]:
    """Return the features of masked records, under the names of TF Model Garden.

    Args:
        tokens, pairs, row_format: see `unmasked_features`.
        rules: result of `masking_rules`.
        max_predictions_per_seq: width of the features of targets.

    Returns:
        input_word_ids, input_mask, input_type_ids: int32 [rows, max_seq_length].
        masked_lm_positions, masked_lm_ids: int32 [rows, max_predictions_per_seq], targets in rising
            order of positions, then zeros.
        masked_lm_weights: float32 [rows, max_predictions_per_seq], 1 for targets, then 0.
        next_sentence_labels: int32 [rows, 1], labels of the pairs.
    """
    ids, types = pack_segments(tokens, pairs, row_format)
    lengths = pair_lengths(pairs)
    masked = mask_rows(
        ids, lengths, pairs["key"], rules, max_predictions_per_seq=max_predictions_per_seq
    )
    weights = _ones_then_zeros(masked.counts, max_predictions_per_seq).astype(np.float32)
    return {
        "input_word_ids": masked.ids,
        "input_mask": _ones_then_zeros(lengths, row_format.max_seq_length),
        "input_type_ids": types,
        "masked_lm_positions": masked.positions,
        "masked_lm_ids": masked.target_ids,
        "masked_lm_weights": weights,
        "next_sentence_labels": pairs["label"].astype(np.int32)[:, None],
    }


def _ones_then_zeros(counts: np.ndarray, width: int) -> np.ndarray:
    """Return int32 [n, width]; row i has `counts[i]` ones, then zeros."""
    return (np.arange(width, dtype=np.int32) < counts[:, None]).astype(np.int32)
