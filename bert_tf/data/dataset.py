"""Pretraining records to batches: an order that is a pure function of seed and epoch.

Records are shuffled over all shards when they are made, so an epoch only has to reorder blocks of
records, and the rows inside each block: no shuffle buffer, and any position can be entered without
reading what comes before it.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from bert_tf.config.errors import InputError
from bert_tf.data.pretraining_data import PretrainingData
from bert_tf.data.random_numbers import combine_keys, seed_key
from bert_tf.data.records import FEATURE_NAMES, feature_spec
from bert_tf.data.tfrecord_index import BLOCK_RECORDS, RecordBlock, index_shards, read_records


class PretrainingInputs:
    """Endless training batches over the records of some shards (`TrainingInputs` of the loop).

    Args:
        shards: TFRecord files.
        records: what their records hold.
        batch_size: records of a batch.
        seed: seed of the order.
        block_records: records that are read and reordered together.

    Attributes:
        failure: what went wrong while blocks were read, which TensorFlow reports to the caller as
            an error of its own; None as long as nothing did.

    Raises:
        InputError: there is not a single record, a shard is damaged, or records are not what
            `records` says.
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
    ):
        self._records = records
        self._batch_size = batch_size
        self._seed = seed
        self._blocks = index_shards(
            shards, compression=records.compression, block_records=block_records
        )
        self._block_sizes = np.array([block.records for block in self._blocks], np.int64)
        self.failure: InputError | None = None
        if not self._blocks:
            raise InputError(f"no records in {len(shards)} training shards; nothing to train on")
        self._check_first_record()

    @property
    def record_count(self) -> int:
        """Records of one epoch."""
        return int(self._block_sizes.sum())

    def position(self, first_update: int) -> dict[str, int]:
        """Epoch, block of that epoch's order and row of that block where an update starts.

        `records` is the number of records of an epoch, which tells other data apart.
        """
        epoch, rest = divmod(first_update * self._batch_size, self.record_count)
        ends = np.cumsum(self._block_sizes[block_order(self._seed, epoch, len(self._blocks))])
        block = int(np.searchsorted(ends, rest, side="right"))
        row = rest - (int(ends[block - 1]) if block else 0)
        return {"epoch": epoch, "block": block, "row": row, "records": self.record_count}

    def batches(self, first_update: int) -> tf.data.Dataset:
        """Batches from an update on, endlessly; see `parse_records` for what a batch holds."""
        position = self.position(first_update)
        blocks = len(self._blocks)
        first = position["epoch"] * blocks + position["block"]

        def read(number: np.int64) -> np.ndarray:
            epoch, place = divmod(int(number), blocks)
            block = int(block_order(self._seed, epoch, blocks)[place])
            rows = row_order(self._seed, epoch, block, self._blocks[block].records)
            skipped = position["row"] if number == first else 0
            try:
                return self._read(self._blocks[block])[rows[skipped:]]
            except InputError as error:
                self.failure = error
                raise

        def read_tensor(number: tf.Tensor) -> tf.Tensor:
            records = tf.numpy_function(read, [number], tf.string, stateful=False)
            return tf.ensure_shape(records, [None])

        return (
            tf.data.Dataset.range(first, np.iinfo(np.int64).max)
            .map(read_tensor)
            .prefetch(2)
            .rebatch(self._batch_size, drop_remainder=True)
            .map(
                lambda records: parse_records(
                    tf.ensure_shape(records, [self._batch_size]), self._records
                ),
                num_parallel_calls=2,
                deterministic=True,
            )
        )

    def _check_first_record(self) -> None:
        block = self._blocks[0]
        try:
            parse_records(tf.constant(self._read(block)[:1], tf.string), self._records)
        except tf.errors.InvalidArgumentError as error:
            raise InputError(
                f"{block.shard}: its records are not as the manifest says "
                f"(max_seq_length {self._records.max_seq_length}, max_predictions_per_seq "
                f"{self._records.max_predictions_per_seq}, {self._records.feature_names} names): "
                f"{error.message}; make the data again"
            ) from None

    def _read(self, block: RecordBlock) -> np.ndarray:
        records = read_records(block, compression=self._records.compression)
        return np.array(records, dtype=object)


def evaluation_batches(
    shards: list[str], records: PretrainingData, *, batch_size: int, limit: int = 0
) -> tf.data.Dataset:
    """One pass over the first records of the shards, in the order of the files.

    Args:
        shards: TFRecord files.
        records: what their records hold.
        batch_size: records of a batch; the last one is filled up with rows of zeros, whose
            `input_mask` and `masked_lm_weights` are 0.
        limit: records read; 0 for all.

    Returns:
        Batches as `parse_records` gives them.
    """
    compression = "GZIP" if records.compression == "gzip" else ""
    dataset = tf.data.TFRecordDataset(shards, compression_type=compression)
    if limit:
        dataset = dataset.take(limit)

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


def parse_records(serialized: tf.Tensor, records: PretrainingData) -> dict[str, tf.Tensor]:
    """Records to the arrays the model takes.

    Args:
        serialized: string [n], `tf.train.Example` bytes.
        records: what they hold.

    Returns:
        `input_word_ids`, `input_mask`, `input_type_ids` int32 [n, max_seq_length];
        `masked_lm_positions`, `masked_lm_ids` int32 and `masked_lm_weights` float32
        [n, max_predictions_per_seq]; `next_sentence_labels` int32 [n].
    """
    names = FEATURE_NAMES[records.feature_names]
    spec = feature_spec(
        records.max_seq_length, records.max_predictions_per_seq, records.feature_names
    )
    parsed = tf.io.parse_example(serialized, spec)
    batch = {
        name: parsed[feature] if name == "masked_lm_weights" else tf.cast(parsed[feature], tf.int32)
        for name, feature in names.items()
    }
    return {**batch, "next_sentence_labels": batch["next_sentence_labels"][:, 0]}


def block_order(seed: int, epoch: int, blocks: int) -> np.ndarray:
    """The order of the blocks in an epoch: a permutation of 0 … blocks - 1, int64."""
    return _permutation(blocks, seed_key(seed, "blocks"), epoch)


def row_order(seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
    """The order of the rows of a block in an epoch: a permutation of 0 … rows - 1, int64."""
    return _permutation(rows, seed_key(seed, "rows"), epoch, block)


def _permutation(count: int, key: np.uint64, *names: int) -> np.ndarray:
    keys = np.full(count, key, np.uint64)
    for name in names:
        keys = combine_keys(keys, np.uint64(name))
    return np.argsort(combine_keys(keys, np.arange(count, dtype=np.uint64)), kind="stable")
