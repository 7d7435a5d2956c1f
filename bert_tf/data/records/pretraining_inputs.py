"""Batches of pretraining records, in an order that allows to start at any step.

The order is a pure function of seed and epoch, so the position of a step is computed, not searched
for: steps and rows give the epoch, and a permutation of the blocks gives the block and the row in
it. To resume there, a single block is read.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.epoch_records import (
    DynamicMasking,
    DynamicRecords,
    EpochRecords,
    ShuffledRecords,
    UnpackedRecords,
    block_order,
)
from bert_tf.data.records.index import BLOCK_RECORDS, index_shards
from bert_tf.data.records.packed_records import (
    PackedRecords,
    PackingPlan,
    measure_sequences,
    plan_packing,
)
from bert_tf.data.records.parsing import parse_records


class PretrainingInputs:
    """Endless training batches over the records of some shards (`TrainingInputs` of the loop).

    With packing, the sequences of a block share rows, see `packed_records`, and a batch has as many
    rows as hold `batch_size` sequences on average.

    Args:
        shards: paths of TFRecord files.
        records: description of the records.
        batch_size: sequences of a batch.
        seed: seed of the order and of dynamic masks.
        block_records: records that are read and reordered together.
        packing: "on", "off", or "auto", which packs if that saves a sixth of the rows or more.
        row_multiple: with packing, the rows of a batch are a multiple of this.
        masking: how unmasked records are masked; None if records are masked.

    Attributes:
        packing: the plan of packing; None without packing.
        rows: rows of a batch.
        predictions: most masked tokens of a row.
        failure: the error while reading blocks, which TensorFlow reports as one of its own; None if
            there was none.

    Raises:
        InputError: there is no record, a shard is damaged, or records are not as described.
        UsageError: a shard is missing.
    """

    def __init__(
        self,
        shards: list[str],
        records: PretrainingData,
        *,
        batch_size: int,
        seed: int,
        block_records: int = BLOCK_RECORDS,
        packing: str = "off",
        row_multiple: int = 1,
        masking: DynamicMasking | None = None,
    ):
        self._seed = seed
        predictions = None if masking is None else masking.rules.predictions
        blocks = index_shards(
            shards,
            compression=records.compression,
            block_records=block_records,
            measure=None if packing == "off" else measure_sequences(records, predictions),
        )
        self.failure: InputError | None = None
        if not blocks:
            raise InputError(
                f"no records in {quantity(len(shards), 'training shard')}; nothing to train on"
            )
        source: UnpackedRecords
        places = [dataclasses.replace(block, measures=None) for block in blocks]
        if masking is None:
            source = ShuffledRecords(places, records, seed=seed)
            max_predictions = records.max_predictions_per_seq
        else:
            source = DynamicRecords(places, records, masking, seed=seed)
            max_predictions = masking.max_predictions
        source.check_first()
        self._block_records = np.array([block.records for block in blocks], np.int64)
        self._source: EpochRecords = source
        self.packing: PackingPlan | None = None
        self.rows = batch_size
        self._block_rows = self._block_records
        self.predictions = max_predictions
        if packing != "off":
            plan = plan_packing(
                blocks, max_seq_length=records.max_seq_length, max_predictions=max_predictions
            )
            if packing == "on" or plan.is_worthwhile:
                multiples = max(1, round(batch_size / plan.sequences_per_row / row_multiple))
                self.packing = plan
                self.rows = multiples * row_multiple
                self.predictions = plan.shape.predictions
                self._block_rows = plan.block_rows
                self._source = PackedRecords(source, plan.shape, seed=seed)

    @property
    def record_count(self) -> int:
        """Number of records of an epoch."""
        return int(self._block_records.sum())

    def position(self, first_step: int) -> dict[str, int]:
        """Return epoch, block in the epoch's order, and row of the block where a step starts.

        Two more values show whether the data have changed: `records`, the number of records of an
        epoch, and with packing `rows`, the number of rows that they take.
        """
        rows = int(self._block_rows.sum())
        epoch, rest = divmod(first_step * self.rows, rows)
        ends = np.cumsum(self._block_rows[self._blocks_of(epoch)])
        block = int(np.searchsorted(ends, rest, side="right"))
        row = rest - (int(ends[block - 1]) if block else 0)
        position = {"epoch": epoch, "block": block, "row": row, "records": self.record_count}
        return position if self.packing is None else position | {"rows": rows}

    def sequences_before(self, step: int) -> int:
        """Return the number of sequences in all batches before a step.

        Raises:
            InputError: the block where the step starts is damaged.
        """
        position = self.position(step)
        epoch = position["epoch"]
        order = self._blocks_of(epoch)
        whole = int(self._block_records[order[: position["block"]]].sum())
        partial = self._source.sequences(epoch, int(order[position["block"]]), position["row"])
        return epoch * self.record_count + whole + partial

    def batches(self, first_step: int) -> tf.data.Dataset:
        """Return endless batches from a step on, with features of `parse_records` or
        `pack_features`.
        """
        position = self.position(first_step)
        blocks = len(self._block_rows)
        first = position["epoch"] * blocks + position["block"]
        source = self._source
        signature = source.signature()

        def read(number: np.int64) -> list[np.ndarray]:
            epoch, place = divmod(int(number), blocks)
            skipped = position["row"] if number == first else 0
            try:
                rows = source.read(epoch, int(self._blocks_of(epoch)[place]))
            except InputError as error:
                self.failure = error
                raise
            return [rows[name][skipped:] for name in signature]

        @tf.autograph.experimental.do_not_convert
        def read_tensors(number: tf.Tensor) -> dict[str, tf.Tensor]:
            types = [spec.dtype for spec in signature.values()]
            tensors = tf.numpy_function(read, [number], types, stateful=False)
            return {
                name: tf.ensure_shape(tensor, [None, *spec.shape])
                for (name, spec), tensor in zip(signature.items(), tensors, strict=True)
            }

        @tf.autograph.experimental.do_not_convert
        def batch(rows: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            shapes = {name: [self.rows, *tensor.shape[1:]] for name, tensor in rows.items()}
            return source.batch(
                {name: tf.ensure_shape(tensor, shapes[name]) for name, tensor in rows.items()}
            )

        return (
            tf.data.Dataset.range(first, np.iinfo(np.int64).max)
            .map(read_tensors)
            .prefetch(2)
            .rebatch(self.rows, drop_remainder=True)
            .map(batch, num_parallel_calls=2, deterministic=True)
        )

    def _blocks_of(self, epoch: int) -> np.ndarray:
        return block_order(self._seed, epoch, len(self._block_records))


def evaluation_batches(
    records: PretrainingData, *, batch_size: int, limit: int = 0
) -> tf.data.Dataset:
    """Return one pass over the first eval records, in file order, as `parse_records` returns them.

    Args:
        records: description of the records.
        batch_size: records of a batch; the last one is filled up with zeros, also in `input_mask`
            and `masked_lm_weights`.
        limit: number of records; 0 for all.
    """
    compression = "GZIP" if records.compression == "gzip" else ""
    dataset = tf.data.TFRecordDataset(records.paths("eval"), compression_type=compression)
    if limit:
        dataset = dataset.take(limit)

    @tf.autograph.experimental.do_not_convert
    def filled(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        missing = batch_size - tf.shape(serialized)[0]
        return {
            name: tf.ensure_shape(
                tf.pad(tensor, [[0, missing]] + [[0, 0]] * (len(tensor.shape) - 1)),
                [batch_size, *tensor.shape[1:]],
            )
            for name, tensor in parse_records(serialized, records).items()
        }

    return dataset.batch(batch_size).map(filled, num_parallel_calls=2, deterministic=True)
