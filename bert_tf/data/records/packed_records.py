"""Several short sequences per row (Krell et al. 2021, "Efficient Sequence Packing without
Cross-contamination", arXiv 2107.02027).

Attention stays inside a sequence, and positions restart at 0, so losses equal those of separate
rows.

Properties:
- The sequences of a block share rows, so that any block can be read by itself. Blocks have the same
  number of rows in every epoch, because packing depends only on lengths and numbers of targets.
- Rows have fixed widths for tokens, targets and sequences, so that shapes are static.
- Equal sequences change places in every epoch, so that other ones share a row.

Details: best-fit decreasing. Sequences are assigned the longest first, each to the open row with
the least space that is enough. The paper's longest-pack-first histogram packing does the same with
counts of lengths; here every sequence keeps its identity. Widths of targets and sequences have some
spare, so that they seldom keep a row from being filled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert_tf.base.compiled import numba
from bert_tf.base.errors import InputError
from bert_tf.data.records.dataset_info import FEATURE_NAMES, PretrainingData
from bert_tf.data.records.epoch_records import EpochRecords, UnpackedRecords, row_order, row_specs
from bert_tf.data.records.example_bytes import count_values
from bert_tf.data.records.index import RecordBlock

# Space in a row, as a multiple of the need of a full row of average sequences. Space for targets
# costs time in the masked-LM head; space for sequences costs next to nothing.
_SPARE_PREDICTIONS = 1.1
_SPARE_SEQUENCES = 4.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackedShape:
    """Widths of a packed row.

    Attributes:
        tokens: length of the row.
        predictions: most masked tokens of its sequences together.
        sequences: most sequences.
    """

    tokens: int
    predictions: int
    sequences: int


def choose_packed_shape(
    lengths: np.ndarray, predictions: np.ndarray, *, max_seq_length: int
) -> PackedShape:
    """Choose widths that seldom keep a row from being filled.

    Targets: a tenth more than a full row of average sequences has. Sequences: four times as many as
    such a row has, but no more than the shortest sequence allows.

    | lengths    | predictions | max_seq_length | predictions per row | sequences per row |
    |------------|-------------|----------------|---------------------|-------------------|
    | 64, 64     | 10, 10      | 128            | 22                  | 2                 |
    | 96, 16, 32 | 14, 2, 5    | 128            | 21                  | 8                 |

    Args:
        lengths: int [sequences], tokens, each from 1 to `max_seq_length`; at least one sequence.
        predictions: int [sequences], masked tokens.
        max_seq_length: tokens of a row.
    """
    tokens = int(lengths.sum(dtype=np.int64))
    mean_sequences = max_seq_length * len(lengths) / tokens
    rate = int(predictions.sum(dtype=np.int64)) / tokens
    ample_predictions = int(np.ceil(_SPARE_PREDICTIONS * rate * max_seq_length))
    ample_sequences = int(np.ceil(_SPARE_SEQUENCES * mean_sequences))
    return PackedShape(
        tokens=max_seq_length,
        predictions=max(int(predictions.max()), ample_predictions, 1),
        sequences=min(ample_sequences, max_seq_length // int(lengths.min())),
    )


def assign_rows(
    lengths: np.ndarray, predictions: np.ndarray, shape: PackedShape
) -> tuple[np.ndarray, int]:
    """Assign sequences to rows by best-fit decreasing: the longest first, each where it fits best.

    Equal sequences (tokens and predictions) are interchangeable: their order decides which row each
    comes to, but not how many rows there are.

    Args:
        lengths: int [sequences], tokens, each from 1 to `shape.tokens`.
        predictions: int [sequences], masked tokens, each at most `shape.predictions`.
        shape: widths of a row.

    Returns:
        The row of each sequence, int64 [sequences], and the number of rows.
    """
    order = np.lexsort((-predictions.astype(np.int64), -lengths.astype(np.int64)))
    rows = np.empty(len(lengths), np.int64)
    limits = (shape.tokens, shape.predictions, shape.sequences)
    return rows, _assign_rows(order, lengths, predictions, limits, rows)


@numba.njit(cache=True, nogil=True)
def _assign_rows(order, lengths, predictions, limits, rows):
    """Fill `rows`, and return their number.

    Open rows with equal space left form a stack. Only the top of a stack is tried, so a sequence
    costs at most one look-up per possible space, however many rows are open.
    """
    max_tokens, max_predictions, max_sequences = limits
    top = np.full(max_tokens + 1, -1, np.int64)  # by space left, the row on top; -1 for none
    below = np.empty(len(order), np.int64)  # by row, the next row of its stack
    used_predictions = np.zeros(len(order), np.int64)
    used_sequences = np.zeros(len(order), np.int64)
    count = 0
    for sequence in order:
        length = lengths[sequence]
        # The row with the least space that is enough.
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
        if used_sequences[row] < max_sequences:  # otherwise, the row is closed
            below[row] = top[space]
            top[space] = row
    return count


def empty_rows(count: int, shape: PackedShape) -> dict[str, np.ndarray]:
    """Return `count` packed rows without any sequence; see `pack_features`."""
    return {
        "input_word_ids": np.zeros((count, shape.tokens), np.int32),
        "input_mask": np.zeros((count, shape.tokens), np.int32),
        "input_type_ids": np.zeros((count, shape.tokens), np.int32),
        "position_ids": np.zeros((count, shape.tokens), np.int32),
        "sequence_ids": np.zeros((count, shape.tokens), np.int32),
        "masked_lm_positions": np.zeros((count, shape.predictions), np.int32),
        "masked_lm_ids": np.zeros((count, shape.predictions), np.int32),
        "masked_lm_weights": np.zeros((count, shape.predictions), np.float32),
        "cls_positions": np.zeros((count, shape.sequences), np.int32),
        "next_sentence_labels": np.zeros((count, shape.sequences), np.int32),
        "next_sentence_weights": np.zeros((count, shape.sequences), np.float32),
    }


def pack_features(
    features: dict[str, np.ndarray], rows: np.ndarray, count: int, shape: PackedShape
) -> dict[str, np.ndarray]:
    """Lay sequences one after the other into their rows.

    Sequences 7 8 9 and 5 6 in a row of 6 tokens:

    | feature          | row         |
    |------------------|-------------|
    | `input_word_ids` | 7 8 9 5 6 0 |
    | `position_ids`   | 0 1 2 0 1 0 |
    | `sequence_ids`   | 1 1 1 2 2 0 |
    | `cls_positions`  | 0 3         |

    Args:
        features: [sequences, …] by name, see `parse_records`; predictions of weight 0 are left out.
        rows: int64 [sequences], the row of each.
        count: number of rows.
        shape: widths of the rows, which the sequences of a row must not exceed.

    Returns:
        input_word_ids, input_mask, input_type_ids, position_ids: int32 [count, shape.tokens].
        sequence_ids: int32 [count, shape.tokens], 1, 2, … on the sequences of a row, 0 on padding.
        masked_lm_positions, masked_lm_ids: int32 [count, shape.predictions].
        masked_lm_weights: float32 [count, shape.predictions].
        cls_positions, next_sentence_labels: int32 [count, shape.sequences].
        next_sentence_weights: float32 [count, shape.sequences], 1 for a sequence, 0 for none.
    """
    packed = empty_rows(count, shape)
    lengths = features["input_mask"].sum(axis=1, dtype=np.int64)
    starts, slots = _places(rows, lengths, count)
    _pack_tokens(
        (rows, starts, slots, lengths),
        (features["input_word_ids"], features["input_type_ids"]),
        (
            packed["input_word_ids"],
            packed["input_type_ids"],
            packed["input_mask"],
            packed["position_ids"],
            packed["sequence_ids"],
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
    """Return the start and the number of each sequence in its row, both int64 [sequences]."""
    used_tokens = np.zeros(count, np.int64)
    used_slots = np.zeros(count, np.int64)
    starts = np.empty(len(rows), np.int64)
    slots = np.empty(len(rows), np.int64)
    for sequence in range(len(rows)):
        row = rows[sequence]
        starts[sequence] = used_tokens[row]
        slots[sequence] = used_slots[row]
        used_tokens[row] += lengths[sequence]
        used_slots[row] += 1
    return starts, slots


@numba.njit(cache=True, nogil=True)
def _pack_tokens(places, features, packed):
    rows, starts, slots, lengths = places
    ids, types = features
    packed_ids, packed_types, mask, positions, sequences = packed
    for sequence in range(len(rows)):
        row = rows[sequence]
        start = starts[sequence]
        number = slots[sequence] + 1
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


# With fewer sequences per row, the wider attention mask takes more time than packing saves.
WORTHWHILE_SEQUENCES_PER_ROW = 1.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackingPlan:
    """Number of rows of all blocks, which is the same in every epoch.

    Attributes:
        shape: widths of a row.
        block_rows: int64 [blocks], rows that the sequences of each block take.
        sequences: sequences of all blocks.
        tokens: tokens of all blocks.
    """

    shape: PackedShape
    block_rows: np.ndarray
    sequences: int
    tokens: int

    @property
    def sequences_per_row(self) -> float:
        """Mean number of sequences per row."""
        return self.sequences / int(self.block_rows.sum())

    @property
    def packing_efficiency(self) -> float:
        """Fraction of all positions that hold a token."""
        return self.tokens / (int(self.block_rows.sum()) * self.shape.tokens)

    @property
    def is_worthwhile(self) -> bool:
        """Whether enough rows are saved to pay for the wider attention mask."""
        return self.sequences_per_row >= WORTHWHILE_SEQUENCES_PER_ROW


def measure_sequences(
    records: PretrainingData, predictions: np.ndarray | None = None
) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return the `measure` of `index_shards` that packing needs.

    It returns int16 or int32 [records, 2], tokens and targets; tokens are -1 if a record lacks
    them.

    Args:
        records: description of the records.
        predictions: int32 [row length + 1], targets of unmasked sequences of each length; None if
            records are masked.
    """
    names = FEATURE_NAMES[records.feature_names]
    # Millions of records have two numbers each.
    largest = np.iinfo(np.int16).max
    kind = np.int16 if records.max_seq_length < largest else np.int32

    def measure(content: np.ndarray, count: int) -> np.ndarray:
        if predictions is None:
            tokens = count_values(content, count, names["input_mask"])[:, 1]
            targets = count_values(content, count, names["masked_lm_weights"])[:, 1]
        else:
            tokens = count_values(content, count, names["input_word_ids"])[:, 0]
            targets = predictions[np.clip(tokens, 0, len(predictions) - 1)]
        return np.stack([tokens, targets], axis=1).clip(-1, np.iinfo(kind).max).astype(kind)

    return measure


def plan_packing(
    blocks: list[RecordBlock], *, max_seq_length: int, max_predictions: int
) -> PackingPlan:
    """Assign the sequences of each block to rows, and keep the number of rows.

    Args:
        blocks: at least one, indexed with `measure_sequences`.
        max_seq_length: tokens of a row.
        max_predictions: most targets of a sequence.

    Raises:
        InputError: a record has no sequence, or one that is too long.
    """
    for block in blocks:
        _check_same_lengths(block, max_seq_length, max_predictions)
    lengths, targets = np.concatenate([block.measures for block in blocks]).T
    shape = choose_packed_shape(lengths, targets, max_seq_length=max_seq_length)
    block_rows = []
    for block in blocks:
        block_lengths, block_targets = block.measures.T
        _, count = assign_rows(block_lengths, block_targets, shape)
        block_rows.append(count)
    return PackingPlan(
        shape=shape,
        block_rows=np.array(block_rows, np.int64),
        sequences=len(lengths),
        tokens=int(lengths.sum(dtype=np.int64)),
    )


def _check_same_lengths(block: RecordBlock, max_seq_length: int, max_predictions: int) -> None:
    lengths, targets = block.measures.T
    wrong = (lengths < 1) | (lengths > max_seq_length)
    wrong |= (targets < 0) | (targets > max_predictions)
    if wrong.any():
        raise InputError(
            f"{block.shard}: record {block.first_record + int(np.argmax(wrong))} is damaged, or "
            f"not of 1 to {max_seq_length} tokens with at most {max_predictions} targets; make "
            "the data again"
        )


class PackedRecords(EpochRecords):
    """Packed rows, from the records of another source.

    The order of the records in an epoch decides which of equally long ones share a row, so other
    sequences meet in another epoch.

    Args:
        source: unpacked records.
        shape: widths of a row.
        seed: seed of the order of the rows.
    """

    def __init__(self, source: UnpackedRecords, shape: PackedShape, *, seed: int):
        self._source = source
        self._shape = shape
        self._seed = seed

    def signature(self) -> dict[str, tf.TensorSpec]:
        return row_specs(empty_rows(0, self._shape))

    def read(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        features = self._source.features(epoch, block)
        lengths = features["input_mask"].sum(axis=1)
        rows, count = assign_rows(lengths, self._source.most_targets(features), self._shape)
        places = row_order(self._seed, epoch, block, count, kind="packed rows")
        return pack_features(features, places[rows], count, self._shape)

    def sequences(self, epoch: int, block: int, rows: int) -> int:
        return int(self.read(epoch, block)["next_sentence_weights"][:rows].sum()) if rows else 0
