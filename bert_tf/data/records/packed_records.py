"""Blocks of records in the order of an epoch, several short sequences per row, as in Krell et al.
2021 (arXiv 2107.02027): attention stays inside a sequence, and positions restart at 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numba
import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError
from bert_tf.data.records.dataset_info import FEATURE_NAMES, PretrainingData
from bert_tf.data.records.epoch_records import EpochRecords, UnpackedRecords, row_order, row_specs
from bert_tf.data.records.example_bytes import count_values
from bert_tf.data.records.index import RecordBlock

_SPARE_PREDICTIONS = 1.1
_SPARE_SEQUENCES = 4.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackedShape:
    tokens: int  # the row's length
    predictions: int
    sequences: int


def choose_packed_shape(
    lengths: np.ndarray, predictions: np.ndarray, *, max_seq_length: int
) -> PackedShape:
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
    """Assign sequences, the longest first, each to the open row that it fills best.

    Returns rows, int64 [sequences], and their number.
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
    widths = {
        **dict.fromkeys(("input_word_ids", "input_mask", "input_type_ids"), shape.tokens),
        **dict.fromkeys(("position_ids", "sequence_ids"), shape.tokens),
        **dict.fromkeys(("masked_lm_positions", "masked_lm_ids"), shape.predictions),
        "masked_lm_weights": shape.predictions,
        **dict.fromkeys(("cls_positions", "next_sentence_labels"), shape.sequences),
        "next_sentence_weights": shape.sequences,
    }
    return {
        name: np.zeros((count, width), np.float32 if name.endswith("_weights") else np.int32)
        for name, width in widths.items()
    }


def pack_features(
    features: dict[str, np.ndarray], rows: np.ndarray, count: int, shape: PackedShape
) -> dict[str, np.ndarray]:
    """Lay sequences into their rows, int64 [sequences]; predictions of weight 0 are left out.

    Sequences 7 8 9 and 5 6 in a row of 6 tokens: input_word_ids 7 8 9 5 6 0, position_ids
    0 1 2 0 1 0, sequence_ids 1 1 1 2 2 0, cls_positions 0 3.
    """
    packed = empty_rows(count, shape)
    lengths = features["input_mask"].sum(axis=1, dtype=np.int64)
    starts, slots = _places(rows, lengths, count)
    names = "input_word_ids", "input_type_ids", "input_mask", "position_ids", "sequence_ids"
    _pack_tokens(
        (rows, starts, slots, lengths),
        (features["input_word_ids"], features["input_type_ids"]),
        tuple(packed[name] for name in names),
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


WORTHWHILE_SEQUENCES_PER_ROW = 1.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackingPlan:
    shape: PackedShape  # capacity of a row
    block_rows: np.ndarray  # int64 [blocks], rows that the sequences of each block take
    sequences: int  # sequences of all blocks
    tokens: int  # their tokens

    @property
    def sequences_per_row(self) -> float:
        return self.sequences / int(self.block_rows.sum())

    @property
    def packing_efficiency(self) -> float:
        return self.tokens / (int(self.block_rows.sum()) * self.shape.tokens)

    @property
    def is_worthwhile(self) -> bool:
        """Whether enough rows are saved to pay for the wider attention mask."""
        return self.sequences_per_row >= WORTHWHILE_SEQUENCES_PER_ROW


def measure_sequences(
    records: PretrainingData, predictions: np.ndarray | None = None
) -> Callable[[np.ndarray, int], np.ndarray]:
    """Make the `measure` of `index_shards`: int [records, 2], tokens and targets."""
    names = FEATURE_NAMES[records.feature_names]
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
    for block in blocks:
        _check_same_lengths(block, max_seq_length, max_predictions)
    lengths, targets = np.concatenate([block.measures for block in blocks]).T
    shape = choose_packed_shape(lengths, targets, max_seq_length=max_seq_length)
    parts = (block.measures.T for block in blocks)
    block_rows = [assign_rows(tokens, targets, shape)[1] for tokens, targets in parts]
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
