"""Blocks of records in the order of an epoch, one row per record."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from bert_tf.data.input.order import row_order
from bert_tf.data.records.damage import find_damage
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.index import RecordBlock, read_records
from bert_tf.data.records.parsing import parse_records


class ShuffledRecords:
    """Reads a block of an epoch as serialized records, which are parsed in batches.

    Args:
        blocks: of all shards.
        records: what they hold.
        seed: seed of the order.
    """

    def __init__(self, blocks: list[RecordBlock], records: PretrainingData, *, seed: int):
        self._blocks = blocks
        self.records = records
        self._seed = seed

    def signature(self) -> dict[str, tf.TensorSpec]:
        """What a row of `read` is."""
        return {"serialized": tf.TensorSpec([], tf.string)}

    def read(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        """The records of a block, bytes [records], in the order of an epoch.

        Raises:
            InputError: a record is damaged.
        """
        records = read_records(self._blocks[block], compression=self.records.compression)
        order = row_order(self._seed, epoch, block, len(records))
        return {"serialized": np.array(records, dtype=object)[order]}

    def features(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        """The same, parsed."""
        with tf.device("CPU:0"):
            serialized = tf.constant(self.read(epoch, block)["serialized"], tf.string)
            parsed = parse_records(serialized, self.records)
        return {name: tensor.numpy() for name, tensor in parsed.items()}

    def most_targets(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Targets of each record, int64 [records]."""
        return np.count_nonzero(features["masked_lm_weights"], axis=1)

    def batch(self, rows: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """What the model takes, of some rows."""
        return parse_records(rows["serialized"], self.records)

    def sequences(self, epoch: int, block: int, rows: int) -> int:
        """Sequences in the first rows of a block in an epoch."""
        return rows

    def check_first(self) -> None:
        """Checks that the data are what their manifest describes.

        Raises:
            InputError: a record of the first block cannot be parsed.
        """
        try:
            parse_records(tf.constant(self.read(0, 0)["serialized"][:1], tf.string), self.records)
        except tf.errors.InvalidArgumentError as error:
            raise find_damage([self._blocks[0].shard], self.records) or error from None
