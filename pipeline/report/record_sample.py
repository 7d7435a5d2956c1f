"""The first records of a data directory's shards, as features."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.parsing import parse_records, parse_unmasked_records

_RECORDS_READ = 10_000


@dataclasses.dataclass(frozen=True)
class RecordSample:
    """The first 10,000 records of a split.

    Attributes:
        shards: paths of all shards of the split.
        features: by TF Model Garden's names, one row per record; unmasked ones have no
            predictions.
    """

    shards: list[str]
    features: dict[str, np.ndarray]

    @property
    def bytes_per_shard(self) -> float:
        """Mean size of the files."""
        return sum(Path(shard).stat().st_size for shard in self.shards) / len(self.shards)


def read_record_sample(data: PretrainingData, split: str, vocab: list[str]) -> RecordSample | None:
    """Reads the beginning of a split; None if it has no shards.

    Args:
        data: the data directory.
        split: "train" or "eval".
        vocab: the vocabulary of its records.

    Raises:
        UsageError: a shard is gone.
        InputError: a shard is damaged.
    """
    shards = data.paths(split)
    if not shards:
        return None
    is_masked = split == "eval" or not data.is_dynamic
    try:
        records = _first_records(shards, data.compression)
        features = _masked(records, data) if is_masked else _unmasked(records, data, vocab)
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError, ValueError) as error:
        raise InputError(
            f"{data.directory}: damaged records ({str(error).splitlines()[0]}); "
            "make the data again with --overwrite"
        ) from None
    return RecordSample(shards, features)


def _first_records(shards: list[str], compression: str) -> list[bytes]:
    """The first records of all shards in turn."""
    missing = [shard for shard in shards if not Path(shard).is_file()]
    if missing:
        raise UsageError(f"{missing[0]}: is gone; make the data again with --overwrite")
    records: list[bytes] = []
    for shard in shards:
        dataset = tf.data.TFRecordDataset(
            shard, compression_type="GZIP" if compression == "gzip" else ""
        )
        left = _RECORDS_READ - len(records)
        records += itertools.islice(dataset.as_numpy_iterator(), left)
    return records


def _masked(records: list[bytes], data: PretrainingData) -> dict[str, np.ndarray]:
    serialized = tf.constant(records, tf.string, shape=[len(records)])
    return {name: rows.numpy() for name, rows in parse_records(serialized, data).items()}


def _unmasked(
    records: list[bytes], data: PretrainingData, vocab: list[str]
) -> dict[str, np.ndarray]:
    rows = parse_unmasked_records(records, data, sep_id=vocab.index("[SEP]"))
    nothing = np.zeros((len(records), 0), np.int32)
    return {
        "input_word_ids": rows.ids,
        "input_mask": rows.input_mask,
        "input_type_ids": rows.input_type_ids,
        "masked_lm_positions": nothing,
        "masked_lm_ids": nothing,
        "masked_lm_weights": nothing.astype(np.float32),
        "next_sentence_labels": rows.labels,
    }
