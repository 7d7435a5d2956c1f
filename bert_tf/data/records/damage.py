"""Finds the damaged record after TensorFlow failed to parse a batch."""

from __future__ import annotations

import re

import tensorflow as tf

from bert_tf.base.errors import InputError
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.index import RecordBlock, index_shards, read_records
from bert_tf.data.records.parsing import parse_records

# The places in its graph that TensorFlow puts around a message.
_TENSORFLOWS_OWN = re.compile(r"^\{\{.*?\}\} (Name: <unknown>, )?| \[Op:\w+\].*$")


def find_damage(shards: list[str], records: PretrainingData) -> InputError | None:
    """The first record that is damaged or does not match the manifest; None if all are sound.

    Reads everything up to that record: for shards that have failed to be read already.

    Args:
        shards: TFRecord files of masked records.
        records: what they hold.
    """
    for shard in shards:
        try:
            for block in index_shards([shard], compression=records.compression):
                serialized = read_records(block, compression=records.compression)
                _check_features(block, serialized, records)
        except InputError as error:
            return error
    return None


def _check_features(block: RecordBlock, serialized: list[bytes], records: PretrainingData) -> None:
    """Raises InputError for the first record that cannot be parsed."""
    if _parse_failure(serialized, records) is None:
        return
    for number, record in enumerate(serialized, start=block.first_record):
        if failure := _parse_failure([record], records):
            raise InputError(
                f"{block.shard}: record {number} does not match the manifest (max_seq_length "
                f"{records.max_seq_length}, max_predictions_per_seq "
                f"{records.max_predictions_per_seq}, {records.feature_names} names): {failure}; "
                "make the data again"
            )


def _parse_failure(serialized: list[bytes], records: PretrainingData) -> str | None:
    try:
        with tf.device("CPU:0"):
            parse_records(tf.constant(serialized, tf.string), records)
    except tf.errors.InvalidArgumentError as error:
        return _TENSORFLOWS_OWN.sub("", error.message.splitlines()[0])
    return None
