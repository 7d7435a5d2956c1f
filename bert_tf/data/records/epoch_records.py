"""Blocks of records in the order of an epoch, which is a pure function of the seed.

Records were shuffled when they were made, so it is enough to permute blocks, and rows within a
block. Reading a single block then suffices to continue at any position of an epoch. Random choices
follow from keys that combine the seed, a purpose, and the numbers of epoch, block and record.
"""

from __future__ import annotations

import abc
import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.base.errors import InputError
from bert_tf.base.kernels import combine_keys, seed_key
from bert_tf.data.examples.masking import MaskingRules, mask_rows
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.index import RecordBlock, read_records
from bert_tf.data.records.parsing import find_damage, parse_records, parse_unmasked_records


def block_order(seed: int, epoch: int, blocks: int) -> np.ndarray:
    """Return the order of the blocks in an epoch: a permutation of 0 … blocks - 1, int64."""
    return _permutation(blocks, seed_key(seed, "blocks"), epoch)


def row_order(seed: int, epoch: int, block: int, rows: int, *, kind: str = "rows") -> np.ndarray:
    """Return the order of the rows of a block in an epoch: a permutation of 0 … rows - 1, int64.

    Args:
        seed: seed of the run.
        epoch, block: numbers from 0.
        rows: rows of the block.
        kind: purpose of the order; each has other random numbers.
    """
    return _permutation(rows, seed_key(seed, kind), epoch, block)


def _permutation(count: int, key: np.uint64, *names: int) -> np.ndarray:
    """Return the order of sorted random keys, which depend on `key` and `names`."""
    keys = np.full(count, key, np.uint64)
    for name in names:
        keys = combine_keys(keys, np.uint64(name))
    return np.argsort(combine_keys(keys, np.arange(count, dtype=np.uint64)), kind="stable")


def row_specs(rows: dict[str, np.ndarray]) -> dict[str, tf.TensorSpec]:
    """Return the spec of one row, from arrays [rows, …] by name."""
    return {name: tf.TensorSpec(array.shape[1:], array.dtype) for name, array in rows.items()}


class EpochRecords(abc.ABC):
    """Rows of some shards, in an order that depends on the epoch."""

    @abc.abstractmethod
    def signature(self) -> dict[str, tf.TensorSpec]:
        """Return the spec of a row of `read`, by name."""

    @abc.abstractmethod
    def read(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        """Return the rows of a block in the order of an epoch, [rows, …] by name.

        Raises:
            InputError: a record is damaged.
        """

    def batch(self, rows: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return model inputs for some rows of `read`; traced into a graph."""
        return rows

    def sequences(self, epoch: int, block: int, rows: int) -> int:
        """Return the number of sequences in the first `rows` rows of a block in an epoch."""
        return rows


class UnpackedRecords(EpochRecords):
    """Rows of one record each, which `PackedRecords` can pack.

    Args:
        blocks: blocks of all shards.
        records: description of the records.
        seed: seed of the order, and of masks that are drawn while reading.
    """

    def __init__(self, blocks: list[RecordBlock], records: PretrainingData, *, seed: int):
        self._blocks = blocks
        self._records = records
        self._seed = seed

    def features(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        """Return the rows of `read` as model inputs, in NumPy."""
        return self.read(epoch, block)

    @abc.abstractmethod
    def most_targets(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Return the targets to reserve space for, int [records]; the same in every epoch."""

    def check_first(self) -> None:
        """Check the first block against the manifest.

        Raises:
            InputError: its records are damaged or unlike the manifest.
        """
        self.read(0, 0)


class ShuffledRecords(UnpackedRecords):
    """Masked records. A row is a serialized record; batches of rows are parsed at once."""

    def signature(self) -> dict[str, tf.TensorSpec]:
        return {"serialized": tf.TensorSpec([], tf.string)}

    def read(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        records = read_records(self._blocks[block], compression=self._records.compression)
        order = row_order(self._seed, epoch, block, len(records))
        return {"serialized": np.array(records, dtype=object)[order]}

    def features(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        with tf.device("CPU:0"):
            serialized = tf.constant(self.read(epoch, block)["serialized"], tf.string)
            parsed = parse_records(serialized, self._records)
        return {name: tensor.numpy() for name, tensor in parsed.items()}

    def most_targets(self, features: dict[str, np.ndarray]) -> np.ndarray:
        return np.count_nonzero(features["masked_lm_weights"], axis=1)

    def batch(self, rows: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return parse_records(rows["serialized"], self._records)

    def check_first(self) -> None:
        try:
            parse_records(tf.constant(self.read(0, 0)["serialized"][:1], tf.string), self._records)
        except tf.errors.InvalidArgumentError as error:
            raise find_damage([self._blocks[0].shard], self._records) or error from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingSchedule:
    """A fraction of tokens to mask that changes linearly over the records of a phase.

    Many masks make a harder task that teaches more per token; few masks are closer to the text that
    the model will read. A fraction that falls from 30% to 15% beats either (Ankner et al. 2023,
    "Dynamic Masking Rate Schedules for MLM Pretraining", arXiv 2305.15096). The fraction depends on
    the number of records read before, so that a run can resume at any step. With packing, a row has
    records of one block, which are a few steps apart.

    Attributes:
        first, last: fraction at the first and at the last record.
        records: number of records of all steps of the phase.
    """

    first: float
    last: float
    records: int

    def fractions(self, numbers: np.ndarray) -> np.ndarray:
        """Return the fraction of tokens of each record, float64 [n].

        Args:
            numbers: int64 [n], the number of records read before each.
        """
        done = np.clip(numbers / max(self.records - 1, 1), 0.0, 1.0)
        return self.first + (self.last - self.first) * done


@dataclasses.dataclass(frozen=True, kw_only=True)
class DynamicMasking:
    """How unmasked records are masked when they are read.

    Attributes:
        rules: result of `masking_rules`; with a schedule, for its largest fraction.
        sep_id: id of [SEP], after which the second segment begins.
        schedule: fraction of tokens over the records; None for that of the rules.
    """

    rules: MaskingRules
    sep_id: int
    schedule: MaskingSchedule | None = None

    @property
    def max_predictions(self) -> int:
        """Targets of a row of full length: the width of the features of targets."""
        return int(self.rules.predictions.max())


class DynamicRecords(UnpackedRecords):
    """Unmasked records, which get other masks in every epoch.

    The masks of a record follow from (seed, epoch, number of the record in all shards). They do not
    depend on the order in which records are read.
    """

    def __init__(
        self,
        blocks: list[RecordBlock],
        records: PretrainingData,
        masking: DynamicMasking,
        *,
        seed: int,
    ):
        super().__init__(blocks, records, seed=seed)
        self._firsts = offsets_of(np.array([block.records for block in blocks], np.int64))
        self._masking = masking

    def signature(self) -> dict[str, tf.TensorSpec]:
        return row_specs(self._mask([], np.zeros(0, np.uint64)))

    def read(self, epoch: int, block: int) -> dict[str, np.ndarray]:
        records = read_records(self._blocks[block], compression=self._records.compression)
        # Numbers of the records in all shards, so that each has masks of its own.
        numbers = self._firsts[block] + np.arange(len(records))
        key = np.full(len(records), seed_key(self._seed, "dynamic masks"), np.uint64)
        keys = combine_keys(combine_keys(key, np.uint64(epoch)), numbers.astype(np.uint64))
        order = row_order(self._seed, epoch, block, len(records))
        # Only a schedule needs this number, which takes time in proportion to the number of blocks.
        before = 0 if self._masking.schedule is None else self._records_before(epoch, block)
        try:
            return self._mask([records[number] for number in order], keys[order], before)
        except (tf.errors.InvalidArgumentError, ValueError) as error:
            raise InputError(
                f"{self._blocks[block].shard}: its records do not match the manifest "
                f"(unmasked, max_seq_length {self._records.max_seq_length}, "
                f"{self._records.feature_names} names): {str(error).splitlines()[0]}; "
                "make the data again"
            ) from None

    def most_targets(self, features: dict[str, np.ndarray]) -> np.ndarray:
        return self._masking.rules.predictions[features["input_mask"].sum(axis=1)]

    def _records_before(self, epoch: int, block: int) -> int:
        """Return the number of records that are read before a block of an epoch."""
        sizes = np.diff(self._firsts)
        order = block_order(self._seed, epoch, len(sizes))
        place = int(np.argmax(order == block))
        return epoch * int(self._firsts[-1]) + int(sizes[order[:place]].sum())

    def _targets(self, lengths: np.ndarray, before: int) -> np.ndarray | None:
        """Return the number of targets of rows by the schedule, int32 [n]; None without one."""
        schedule = self._masking.schedule
        if schedule is None:
            return None
        fractions = schedule.fractions(before + np.arange(len(lengths)))
        most = self._masking.rules.predictions[lengths]
        return np.clip(np.rint(lengths * fractions), 1, most).astype(np.int32)

    def _mask(
        self, serialized: list[bytes], keys: np.ndarray, before: int = 0
    ) -> dict[str, np.ndarray]:
        """Return model inputs for records.

        Args:
            serialized: the records.
            keys: uint64 [n], by which masks are drawn.
            before: number of records that are read before the first one.
        """
        rows = parse_unmasked_records(serialized, self._records, sep_id=self._masking.sep_id)
        predictions = self._masking.max_predictions
        masked = mask_rows(
            rows.ids,
            rows.lengths,
            keys,
            self._masking.rules,
            max_predictions_per_seq=predictions,
            word_starts=rows.word_starts.astype(np.bool_),
            targets=self._targets(rows.lengths, before),
        )
        is_target = np.arange(predictions) < masked.counts[:, None]
        return {
            "input_word_ids": masked.ids,
            "input_mask": rows.input_mask,
            "input_type_ids": rows.input_type_ids,
            "masked_lm_positions": masked.positions,
            "masked_lm_ids": masked.target_ids,
            "masked_lm_weights": is_target.astype(np.float32),
            "next_sentence_labels": rows.labels,
        }
