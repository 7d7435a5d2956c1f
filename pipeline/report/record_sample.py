"""The first records of a data directory's shards, as features."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.config.errors import InputError, UsageError
from bert_tf.data.pretraining_data import PretrainingData
from bert_tf.data.records import (
    FEATURE_NAMES,
    feature_spec,
    file_names,
    unmasked_feature_spec,
)

_RECORDS_READ = 10_000


@dataclasses.dataclass(frozen=True)
class RecordSample:
    """The first 10,000 records of a split.

    Attributes:
        shards: paths of all shards of the split.
        features: by TF Model Garden's names, a row a record; unmasked records have no predictions.
    """

    shards: list[str]
    features: dict[str, np.ndarray]

    @property
    def megabytes_a_shard(self) -> float:
        """Mean size of the files."""
        return sum(Path(shard).stat().st_size for shard in self.shards) / len(self.shards) / 1e6


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
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise InputError(
            f"{data.directory}: damaged records ({str(error).splitlines()[0]}); "
            "make the data again with --overwrite"
        ) from None
    return RecordSample(shards, features)


def _first_records(shards: list[str], compression: str) -> tf.Tensor:
    """The first records of all shards in turn, string [records]."""
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
    return tf.constant(records, tf.string, shape=[len(records)])


def _masked(records: tf.Tensor, data: PretrainingData) -> dict[str, np.ndarray]:
    spec = feature_spec(data.max_seq_length, data.max_predictions_per_seq, data.feature_names)
    parsed = tf.io.parse_example(records, spec)
    return {
        name: parsed[stored].numpy() for name, stored in FEATURE_NAMES[data.feature_names].items()
    }


def _unmasked(records: tf.Tensor, data: PretrainingData, vocab: list[str]) -> dict[str, np.ndarray]:
    names = file_names(data.feature_names)
    parsed = tf.io.parse_example(records, unmasked_feature_spec(data.feature_names))
    pieces = parsed[names["input_word_ids"]]
    ids = pieces.to_tensor(shape=[None, data.max_seq_length]).numpy()
    mask = (np.arange(data.max_seq_length) < pieces.row_lengths().numpy()[:, None]).astype(np.int64)
    border = np.argmax(ids == vocab.index("[SEP]"), axis=1)
    second = np.arange(data.max_seq_length) > border[:, None]
    nothing = np.zeros((len(ids), 0), np.int64)
    return {
        "input_word_ids": ids,
        "input_mask": mask,
        "input_type_ids": mask * second * (data.pair_task != "none"),
        "masked_lm_positions": nothing,
        "masked_lm_ids": nothing,
        "masked_lm_weights": nothing.astype(np.float32),
        "next_sentence_labels": parsed[names["next_sentence_labels"]].numpy(),
    }
