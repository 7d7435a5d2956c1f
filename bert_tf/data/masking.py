"""Masked-LM targets: which pieces of a row are to be predicted, and what stands there instead."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np

from bert_tf.data.random_numbers import combine_keys, next_below, next_unit, seed_key

_MASK_SHARE = 0.8
_MASK_OR_RANDOM_SHARE = 0.9


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """What masking knows of the vocabulary and the run.

    Attributes:
        mask_id: id of [MASK].
        never_masked: bool [vocabulary], true for pieces that are no target ([CLS], [SEP], [PAD]).
        continues_word: bool [vocabulary], true for pieces that belong to the word before them;
            all false unless whole words are masked.
        replacements: int32 ids that a target may be replaced with: all but the specials.
        predictions: int32 [row length + 1], targets of a row of each length.
    """

    mask_id: int
    never_masked: np.ndarray
    continues_word: np.ndarray
    replacements: np.ndarray
    predictions: np.ndarray


def predictions_by_length(
    *, max_seq_length: int, max_predictions_per_seq: int, masked_lm_prob: float
) -> np.ndarray:
    """Targets of a row with 0, 1, … max_seq_length pieces, specials counted: int32.

    min(max_predictions_per_seq, max(1, round(length x masked_lm_prob))), halves to the even number:

    | length | probability | maximum | targets |
    |--------|-------------|---------|---------|
    | 3      | 0.15        | 20      | 1       |
    | 30     | 0.15        | 20      | 4       |
    | 128    | 0.15        | 20      | 19      |
    | 128    | 0.3         | 20      | 20      |
    """
    rounded = np.rint(np.arange(max_seq_length + 1) * masked_lm_prob)
    return np.clip(rounded, 1, max_predictions_per_seq).astype(np.int32)


def masking_rules(
    vocab: list[str],
    *,
    max_seq_length: int,
    max_predictions_per_seq: int,
    masked_lm_prob: float,
    whole_word_mask: bool,
) -> MaskingRules:
    """The rules for a vocabulary with the five specials."""
    specials = np.array(
        [vocab.index(piece) for piece in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
    )
    never_masked = np.zeros(len(vocab), np.bool_)
    never_masked[[vocab.index(piece) for piece in ("[PAD]", "[CLS]", "[SEP]")]] = True
    continues_word = np.zeros(len(vocab), np.bool_)
    if whole_word_mask:
        continues_word[:] = [piece.startswith("##") for piece in vocab]
    return MaskingRules(
        mask_id=vocab.index("[MASK]"),
        never_masked=never_masked,
        continues_word=continues_word,
        replacements=np.setdiff1d(np.arange(len(vocab), dtype=np.int32), specials),
        predictions=predictions_by_length(
            max_seq_length=max_seq_length,
            max_predictions_per_seq=max_predictions_per_seq,
            masked_lm_prob=masked_lm_prob,
        ),
    )


@dataclasses.dataclass(frozen=True)
class MaskedRows:
    """Rows with targets.

    Attributes:
        ids: int32 [rows, length], with 80% of the targets as [MASK], 10% as random pieces.
        positions: int32 [rows, targets] of the targets, rising, then zeros.
        target_ids: int32 [rows, targets], what stood there, then zeros.
        counts: int32 [rows], targets that are no padding.
    """

    ids: np.ndarray
    positions: np.ndarray
    target_ids: np.ndarray
    counts: np.ndarray


def mask_rows(
    ids: np.ndarray,
    lengths: np.ndarray,
    keys: np.ndarray,
    rules: MaskingRules,
    *,
    max_predictions_per_seq: int,
) -> MaskedRows:
    """Chooses and hides targets in rows.

    Pieces are chosen at random until the row has the targets that `rules.predictions` says; with
    whole words, a word that would be too many is passed over, and a piece that follows [CLS] or
    [SEP] begins a word. A target becomes [MASK] with probability 0.8, stays with 0.1 and becomes
    one of `rules.replacements` with 0.1.

    Args:
        ids: int32 [rows, length], as they are before masking.
        lengths: int32 [rows], pieces of each row before its padding.
        keys: uint64 [rows]; all choices in a row follow from its key.
        rules: see `masking_rules`.
        max_predictions_per_seq: width of the target arrays.

    Reference: create_masked_lm_predictions in google-research/bert create_pretraining_data.py,
    whose replacements may be specials, while these may not.
    """
    rows = len(ids)
    masked = MaskedRows(
        ids.copy(),
        np.zeros((rows, max_predictions_per_seq), np.int32),
        np.zeros((rows, max_predictions_per_seq), np.int32),
        np.zeros(rows, np.int32),
    )
    _mask_rows(
        masked.ids,
        lengths,
        combine_keys(keys, seed_key(0, "masks")),
        (rules.never_masked, rules.continues_word, rules.replacements, rules.predictions),
        np.int32(rules.mask_id),
        masked.positions,
        masked.target_ids,
        masked.counts,
    )
    return masked


@numba.njit(cache=True, nogil=True)
def _mask_rows(ids, lengths, keys, rules, mask_id, positions, target_ids, counts):
    replacements = rules[2]
    state = np.empty(1, np.uint64)
    width = ids.shape[1]
    starts = np.empty(width, np.int32)
    ends = np.empty(width, np.int32)
    is_target = np.zeros(width, np.bool_)
    for row in range(ids.shape[0]):
        state[0] = keys[row]
        num_words = _find_words(ids[row], lengths[row], rules, starts, ends)
        wanted = rules[3][lengths[row]]
        _choose_targets(starts, ends, num_words, wanted, is_target, state)
        made = 0
        for position in range(lengths[row]):
            if not is_target[position]:
                continue
            is_target[position] = False
            positions[row, made] = position
            target_ids[row, made] = ids[row, position]
            made += 1
            fate = next_unit(state)
            if fate < _MASK_SHARE:
                ids[row, position] = mask_id
            elif fate < _MASK_OR_RANDOM_SHARE:
                ids[row, position] = replacements[next_below(state, len(replacements))]
        counts[row] = made


@numba.njit(cache=True, nogil=True)
def _find_words(ids, length, rules, starts, ends):
    """Fills in where words begin and end; returns their number."""
    never_masked, continues_word = rules[0], rules[1]
    num_words = 0
    in_word = False
    for position in range(length):
        piece = ids[position]
        if never_masked[piece]:
            in_word = False
        elif in_word and continues_word[piece]:
            ends[num_words - 1] = position + 1
        else:
            starts[num_words] = position
            ends[num_words] = position + 1
            num_words += 1
            in_word = True
    return num_words


@numba.njit(cache=True, nogil=True)
def _choose_targets(starts, ends, num_words, wanted, is_target, state):
    """Marks random words as targets until `wanted` pieces are marked; shuffles both arrays."""
    marked = 0
    for i in range(num_words):
        if marked >= wanted:
            return
        j = i + next_below(state, num_words - i)
        starts[i], starts[j] = starts[j], starts[i]
        ends[i], ends[j] = ends[j], ends[i]
        if marked + ends[i] - starts[i] <= wanted:
            marked += ends[i] - starts[i]
            for position in range(starts[i], ends[i]):
                is_target[position] = True
