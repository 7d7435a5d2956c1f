"""Several short sequences in one row: which go together, and the rows they make.

Krell et al. 2021, "Efficient Sequence Packing without Cross-contamination" (arXiv 2107.02027):
attention stays inside a sequence, positions restart at 0, so that a sequence has the losses it
would have alone.
"""

from __future__ import annotations

import dataclasses

import numba
import numpy as np

_SPARE_PREDICTIONS = 1.1
_SPARE_SEQUENCES = 4.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackedShape:
    """The capacity of a packed row.

    Attributes:
        tokens: tokens, the row's length.
        predictions: masked tokens.
        sequences: sequences.
    """

    tokens: int
    predictions: int
    sequences: int


def choose_packed_shape(
    lengths: np.ndarray, predictions: np.ndarray, *, max_seq_length: int
) -> PackedShape:
    """Capacities for masks and sequences that seldom keep a row from being filled.

    A tenth more predictions than a full row of average sequences has, and four times the sequences,
    which cost next to nothing; but no more sequences than the shortest would allow.

    | lengths    | predictions | max_seq_length | predictions per row | sequences per row |
    |------------|-------------|----------------|-------------------|-----------------|
    | 64, 64     | 10, 10      | 128            | 22                | 2               |
    | 96, 16, 32 | 14, 2, 5    | 128            | 21                | 8               |

    Args:
        lengths: int [sequences], tokens, each from 1 to `max_seq_length`; at least one sequence.
        predictions: int [sequences], masked tokens.
        max_seq_length: tokens of a row.
    """
    tokens = int(lengths.sum(dtype=np.int64))
    mean_sequences = max_seq_length * len(lengths) / tokens
    rate = int(predictions.sum(dtype=np.int64)) / tokens
    return PackedShape(
        tokens=max_seq_length,
        predictions=max(
            int(predictions.max()), int(np.ceil(_SPARE_PREDICTIONS * rate * max_seq_length)), 1
        ),
        sequences=min(
            int(np.ceil(_SPARE_SEQUENCES * mean_sequences)), max_seq_length // int(lengths.min())
        ),
    )


def assign_rows(
    lengths: np.ndarray, predictions: np.ndarray, shape: PackedShape
) -> tuple[np.ndarray, int]:
    """Assigns sequences to rows, the longest first, each to an open row that it fills best.

    Among equally long sequences with as many predictions the given order decides which row they
    come to, but not how many rows there are: any order of the same sequences takes as many.

    Args:
        lengths: int [sequences], tokens, each from 1 to `shape.tokens`.
        predictions: int [sequences], masked tokens, each at most `shape.predictions`.
        shape: capacity of a row.

    Returns:
        The row of each sequence, int64 [sequences], and the number of rows.
    """
    order = np.lexsort((-predictions.astype(np.int64), -lengths.astype(np.int64)))
    rows = np.empty(len(lengths), np.int64)
    limits = (shape.tokens, shape.predictions, shape.sequences)
    return rows, _assign_rows(order, lengths, predictions, limits, rows)


@numba.njit(cache=True, nogil=True)
def _assign_rows(order, lengths, predictions, limits, rows):
    """Rows with equal space left are a stack; only the one on top is tried."""
    max_tokens, max_predictions, max_sequences = limits
    top = np.full(max_tokens + 1, -1, np.int64)
    below = np.empty(len(order), np.int64)
    used_predictions = np.zeros(len(order), np.int64)
    used_sequences = np.zeros(len(order), np.int64)
    count = 0
    for sequence in order:
        length = lengths[sequence]
        row = -1
        space = length
        while space <= max_tokens:
            row = top[space]
            if row >= 0 and used_predictions[row] + predictions[sequence] <= max_predictions:
                top[space] = below[row]
                break
            row = -1
            space += 1
        if row < 0:
            row = count
            count += 1
            space = max_tokens
        rows[sequence] = row
        used_predictions[row] += predictions[sequence]
        used_sequences[row] += 1
        space -= length
        if used_sequences[row] < max_sequences:
            below[row] = top[space]
            top[space] = row
    return count


def empty_rows(count: int, shape: PackedShape) -> dict[str, np.ndarray]:
    """What `pack_features` gives, without any sequence."""
    by_token = (count, shape.tokens)
    by_prediction = (count, shape.predictions)
    by_sequence = (count, shape.sequences)
    return {
        "input_word_ids": np.zeros(by_token, np.int32),
        "input_mask": np.zeros(by_token, np.int32),
        "input_type_ids": np.zeros(by_token, np.int32),
        "position_ids": np.zeros(by_token, np.int32),
        "sequence_ids": np.zeros(by_token, np.int32),
        "masked_lm_positions": np.zeros(by_prediction, np.int32),
        "masked_lm_ids": np.zeros(by_prediction, np.int32),
        "masked_lm_weights": np.zeros(by_prediction, np.float32),
        "cls_positions": np.zeros(by_sequence, np.int32),
        "next_sentence_labels": np.zeros(by_sequence, np.int32),
        "next_sentence_weights": np.zeros(by_sequence, np.float32),
    }


def pack_features(
    features: dict[str, np.ndarray], rows: np.ndarray, count: int, shape: PackedShape
) -> dict[str, np.ndarray]:
    """Lays sequences one after the other into their rows.

    Sequences of 3 and 2 tokens with ids 7 8 9 and 5 6, rows of 6 tokens:

    | feature          | row             |
    |------------------|-----------------|
    | `input_word_ids` | 7 8 9 5 6 0     |
    | `position_ids`   | 0 1 2 0 1 0     |
    | `sequence_ids`   | 1 1 1 2 2 0     |
    | `cls_positions`  | 0 3             |

    Args:
        features: of [sequences, …]: int32 input_word_ids, input_mask (ones, then zeros),
            input_type_ids; masked_lm_positions, masked_lm_ids int32, masked_lm_weights float32
            (those of weight 0 are left out); next_sentence_labels int32 [sequences].
        rows: int64 [sequences], the row of each.
        count: number of rows.
        shape: widths of the rows; nothing may go beyond them.

    Returns:
        int32 [count, shape.tokens] input_word_ids, input_mask, input_type_ids, position_ids and
        sequence_ids (1, 2, … for the sequences of a row, 0 for padding); [count,
        shape.predictions] masked_lm_positions, masked_lm_ids, masked_lm_weights; [count,
        shape.sequences] int32 cls_positions, next_sentence_labels and float32
        next_sentence_weights (1 for a sequence). What fills up is 0.
    """
    packed = empty_rows(count, shape)
    lengths = features["input_mask"].sum(axis=1, dtype=np.int64)
    starts, slots = _places(rows, lengths, count)
    _pack_tokens(
        (rows, starts, slots, lengths),
        (features["input_word_ids"], features["input_type_ids"]),
        tuple(
            packed[name]
            for name in (
                *("input_word_ids", "input_type_ids", "input_mask"),
                *("position_ids", "sequence_ids"),
            )
        ),
    )
    _pack_predictions(
        (rows, starts),
        (features["masked_lm_positions"], features["masked_lm_ids"]),
        features["masked_lm_weights"],
        (packed["masked_lm_positions"], packed["masked_lm_ids"]),
        packed["masked_lm_weights"],
    )
    packed["cls_positions"][rows, slots] = starts
    packed["next_sentence_labels"][rows, slots] = features["next_sentence_labels"]
    packed["next_sentence_weights"][rows, slots] = 1.0
    return packed


@numba.njit(cache=True, nogil=True)
def _places(rows, lengths, count):
    """Where each sequence starts in its row, and its number there: int64 [sequences] both."""
    used = np.zeros((count, 2), np.int64)
    starts = np.empty(len(rows), np.int64)
    slots = np.empty(len(rows), np.int64)
    for sequence in range(len(rows)):
        row = used[rows[sequence]]
        starts[sequence], slots[sequence] = row[0], row[1]
        row[0] += lengths[sequence]
        row[1] += 1
    return starts, slots


@numba.njit(cache=True, nogil=True)
def _pack_tokens(places, features, packed):
    rows, starts, slots, lengths = places
    ids, types = features
    packed_ids, packed_types, mask, positions, sequences = packed
    for sequence in range(len(rows)):
        row, start, number = rows[sequence], starts[sequence], slots[sequence] + 1
        for i in range(lengths[sequence]):
            packed_ids[row, start + i] = ids[sequence, i]
            packed_types[row, start + i] = types[sequence, i]
            mask[row, start + i] = 1
            positions[row, start + i] = i
            sequences[row, start + i] = number


@numba.njit(cache=True, nogil=True)
def _pack_predictions(places, features, weights, packed, packed_weights):
    rows, starts = places
    positions, ids = features
    packed_positions, packed_ids = packed
    used = np.zeros(len(packed_positions), np.int64)
    for sequence in range(len(rows)):
        row = rows[sequence]
        for i in range(weights.shape[1]):
            if weights[sequence, i] == 0:
                continue
            packed_positions[row, used[row]] = starts[sequence] + positions[sequence, i]
            packed_ids[row, used[row]] = ids[sequence, i]
            packed_weights[row, used[row]] = weights[sequence, i]
            used[row] += 1
