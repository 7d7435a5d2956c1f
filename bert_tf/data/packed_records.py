"""Blocks of records in the order of an epoch, several records a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert_tf.config.errors import InputError
from bert_tf.data.packing import PackedShape, assign_rows, choose_packed_shape, pack_features
from bert_tf.data.pretraining_data import PretrainingData
from bert_tf.data.record_order import packed_row_order
from bert_tf.data.record_parsing import parse_records
from bert_tf.data.records import FEATURE_NAMES
from bert_tf.data.shuffled_records import ShuffledRecords
from bert_tf.data.tfrecord_index import RecordBlock
from bert_tf.data.value_counts import count_values

WORTHWHILE_SEQUENCES_A_ROW = 1.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackingPlan:
    """Rows of all blocks; the same in every epoch.

    Attributes:
        shape: what a row has room for.
        block_rows: int64 [blocks], rows that the sequences of each block take.
        sequences: sequences of all blocks.
        pieces: their pieces.
    """

    shape: PackedShape
    block_rows: np.ndarray
    sequences: int
    pieces: int

    @property
    def sequences_a_row(self) -> float:
        """Mean over all rows."""
        return self.sequences / int(self.block_rows.sum())

    @property
    def filled_share(self) -> float:
        """Share of all places that hold a piece."""
        return self.pieces / (int(self.block_rows.sum()) * self.shape.pieces)

    @property
    def is_worthwhile(self) -> bool:
        """Whether rows are saved that are worth the wider attention mask."""
        return self.sequences_a_row >= WORTHWHILE_SEQUENCES_A_ROW


def measure_sequences(records: PretrainingData) -> Callable[[np.ndarray, int], np.ndarray]:
    """What `index_shards` measures for `plan_packing`: int16 [records, 2], pieces and targets."""
    names = FEATURE_NAMES[records.feature_names]

    def measure(content: np.ndarray, count: int) -> np.ndarray:
        pieces = count_values(content, count, names["input_mask"])[:, 1]
        targets = count_values(content, count, names["masked_lm_weights"])[:, 1]
        return np.stack([pieces, targets], axis=1).astype(np.int16)

    return measure


def plan_packing(blocks: list[RecordBlock], records: PretrainingData) -> PackingPlan:
    """Deals the sequences of each block to rows.

    Args:
        blocks: indexed with `measure_sequences`; at least one.
        records: what they hold.

    Raises:
        InputError: a record has no sequence, or one that is longer than a row.
    """
    for block in blocks:
        _refuse_other_lengths(block, records)
    measures = np.concatenate([_measures(block) for block in blocks])
    lengths, targets = measures[:, 0], measures[:, 1]
    shape = choose_packed_shape(lengths, targets, max_seq_length=records.max_seq_length)
    block_rows = [
        assign_rows(_measures(block)[:, 0], _measures(block)[:, 1], shape)[1] for block in blocks
    ]
    return PackingPlan(
        shape=shape,
        block_rows=np.array(block_rows, np.int64),
        sequences=len(lengths),
        pieces=int(lengths.sum(dtype=np.int64)),
    )


def _measures(block: RecordBlock) -> np.ndarray:
    assert block.measures is not None
    return block.measures


def _refuse_other_lengths(block: RecordBlock, records: PretrainingData) -> None:
    lengths, targets = _measures(block).T
    wrong = (lengths < 1) | (lengths > records.max_seq_length)
    wrong |= (targets < 0) | (targets > records.max_predictions_per_seq)
    if wrong.any():
        raise InputError(
            f"{block.shard}: record {block.first_record + int(np.argmax(wrong))} is damaged, or "
            f"not of 1 to {records.max_seq_length} pieces with at most "
            f"{records.max_predictions_per_seq} targets; make the data again"
        )


class PackedRecords:
    """Reads a block of an epoch as packed rows.

    The epoch's order of the records decides which of equally long ones share rows, so other
    sequences meet in another epoch.

    Args:
        records: the blocks, unpacked.
        shape: what a row has room for.
        seed: seed of the order of the rows.
    """

    def __init__(self, records: ShuffledRecords, shape: PackedShape, *, seed: int):
        self._records = records
        self._shape = shape
        self._seed = seed

    def signature(self) -> dict[str, tf.TensorSpec]:
        """What a row of `read` is."""
        none = self._pack(self._parse(np.zeros(0, object)), np.zeros(0, np.int64), 0)
        return {name: tf.TensorSpec(rows.shape[1:], rows.dtype) for name, rows in none.items()}

    def read(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        """The rows of a block in the order of an epoch, as `pack_features` makes them.

        Raises:
            InputError: a record is damaged.
        """
        features = self._parse(self._records.read(epoch, block)["serialized"])
        lengths = features["input_mask"].sum(axis=1)
        targets = np.count_nonzero(features["masked_lm_weights"], axis=1)
        rows, count = assign_rows(lengths, targets, self._shape)
        places = packed_row_order(self._seed, epoch, block, count)
        return self._pack(features, places[rows], count)

    def batch(self, rows: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """What the model takes, of some rows."""
        return rows

    def sequences(self, epoch: int, block: int, rows: int) -> int:
        """Sequences in the first rows of a block in an epoch."""
        return int(self.read(epoch, block)["next_sentence_weights"][:rows].sum()) if rows else 0

    def _parse(self, serialized: np.ndarray) -> dict[str, np.ndarray]:
        with tf.device("CPU:0"):
            parsed = parse_records(tf.constant(serialized, tf.string), self._records.records)
        return {name: tensor.numpy() for name, tensor in parsed.items()}

    def _pack(
        self, features: dict[str, np.ndarray], rows: np.ndarray, count: int
    ) -> dict[str, np.ndarray]:
        return pack_features(features, rows, count, self._shape)
