"""Blocks of records in the order of an epoch, several records per row."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError
from bert_tf.data.input.order import packed_row_order
from bert_tf.data.input.packing import (
    PackedShape,
    assign_rows,
    choose_packed_shape,
    empty_rows,
    pack_features,
)
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.index import RecordBlock
from bert_tf.data.records.schema import FEATURE_NAMES
from bert_tf.data.records.value_counts import count_values

WORTHWHILE_SEQUENCES_PER_ROW = 1.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackingPlan:
    """Rows of all blocks; the same in every epoch.

    Attributes:
        shape: capacity of a row.
        block_rows: int64 [blocks], rows that the sequences of each block take.
        sequences: sequences of all blocks.
        tokens: their tokens.
    """

    shape: PackedShape
    block_rows: np.ndarray
    sequences: int
    tokens: int

    @property
    def sequences_per_row(self) -> float:
        """Mean over all rows."""
        return self.sequences / int(self.block_rows.sum())

    @property
    def packing_efficiency(self) -> float:
        """Fraction of all positions that hold a token."""
        return self.tokens / (int(self.block_rows.sum()) * self.shape.tokens)

    @property
    def is_worthwhile(self) -> bool:
        """Whether enough rows are saved to be worth the wider attention mask."""
        return self.sequences_per_row >= WORTHWHILE_SEQUENCES_PER_ROW


def measure_sequences(
    records: PretrainingData, predictions: np.ndarray | None = None
) -> Callable[[np.ndarray, int], np.ndarray]:
    """What `index_shards` measures for `plan_packing`: int [records, 2], tokens and targets.

    Of damaged records they are as they would be in longer records, which `plan_packing` refuses.

    Args:
        records: what the shards hold.
        predictions: int32 [row length + 1], targets of unmasked sequences of each length; None
            where records are masked.
    """
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
    """Assigns the sequences of each block to rows.

    Args:
        blocks: indexed with `measure_sequences`; at least one.
        max_seq_length: tokens of the longest sequence there can be, and of a row.
        max_predictions: targets of a sequence at most.

    Raises:
        InputError: a record has no sequence, or one that is longer than a row.
    """
    for block in blocks:
        _check_same_lengths(block, max_seq_length, max_predictions)
    measures = np.concatenate([_measures(block) for block in blocks])
    lengths, targets = measures[:, 0], measures[:, 1]
    shape = choose_packed_shape(lengths, targets, max_seq_length=max_seq_length)
    block_rows = [
        assign_rows(_measures(block)[:, 0], _measures(block)[:, 1], shape)[1] for block in blocks
    ]
    return PackingPlan(
        shape=shape,
        block_rows=np.array(block_rows, np.int64),
        sequences=len(lengths),
        tokens=int(lengths.sum(dtype=np.int64)),
    )


def _measures(block: RecordBlock) -> np.ndarray:
    assert block.measures is not None
    return block.measures


def _check_same_lengths(block: RecordBlock, max_seq_length: int, max_predictions: int) -> None:
    lengths, targets = _measures(block).T
    wrong = (lengths < 1) | (lengths > max_seq_length)
    wrong |= (targets < 0) | (targets > max_predictions)
    if wrong.any():
        raise InputError(
            f"{block.shard}: record {block.first_record + int(np.argmax(wrong))} is damaged, or "
            f"not of 1 to {max_seq_length} tokens with at most {max_predictions} targets; make "
            "the data again"
        )


class FeatureSource(Protocol):
    """Unpacked features of blocks, one row per record, in the order of an epoch."""

    def features(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        """What `parse_records` gives, for the whole block."""
        ...

    def most_targets(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Int [records], targets to reserve capacity for; the same in every epoch."""
        ...


class PackedRecords:
    """Reads a block of an epoch as packed rows.

    The epoch's order of the records decides which of equally long ones share rows, so other
    sequences meet in another epoch.

    Args:
        source: the blocks, unpacked.
        shape: capacity of a row.
        seed: seed of the order of the rows.
    """

    def __init__(self, source: FeatureSource, shape: PackedShape, *, seed: int):
        self._source = source
        self._shape = shape
        self._seed = seed

    def signature(self) -> dict[str, tf.TensorSpec]:
        """What a row of `read` is."""
        return {
            name: tf.TensorSpec(rows.shape[1:], rows.dtype)
            for name, rows in empty_rows(0, self._shape).items()
        }

    def read(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        """The rows of a block in the order of an epoch, as `pack_features` makes them.

        Raises:
            InputError: a record is damaged.
        """
        features = self._source.features(epoch, block)
        lengths = features["input_mask"].sum(axis=1)
        rows, count = assign_rows(lengths, self._source.most_targets(features), self._shape)
        places = packed_row_order(self._seed, epoch, block, count)
        return pack_features(features, places[rows], count, self._shape)

    def batch(self, rows: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """What the model takes, of some rows."""
        return rows

    def sequences(self, epoch: int, block: int, rows: int) -> int:
        """Sequences in the first rows of a block in an epoch."""
        return int(self.read(epoch, block)["next_sentence_weights"][:rows].sum()) if rows else 0
