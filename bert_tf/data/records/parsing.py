"""Serialized pretraining records to model inputs, and the first damaged record."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError
from bert_tf.data.records.dataset_info import FEATURE_NAMES, PretrainingData, file_names
from bert_tf.data.records.index import RecordBlock, index_shards, read_records


def unmasked_feature_spec(names: str = "reference") -> dict[str, Any]:
    stored = file_names(names)
    return {
        stored["input_word_ids"]: tf.io.RaggedFeature(tf.int64),
        stored["word_starts"]: tf.io.RaggedFeature(tf.int64),
        stored["next_sentence_labels"]: tf.io.FixedLenFeature([1], tf.int64),
    }


def feature_spec(
    max_seq_length: int, max_predictions_per_seq: int, names: str = "reference"
) -> dict[str, tf.io.FixedLenFeature]:
    lengths = {"input": max_seq_length, "masked": max_predictions_per_seq, "next": 1}
    kinds = {"masked_lm_weights": tf.float32}
    return {
        stored: tf.io.FixedLenFeature([lengths[name.split("_")[0]]], kinds.get(name, tf.int64))
        for name, stored in FEATURE_NAMES[names].items()
    }


def parse_records(serialized: tf.Tensor, records: PretrainingData) -> dict[str, tf.Tensor]:
    """Parse masked records, string [n] of `tf.train.Example` bytes, into model inputs.

    They are those of `pretraining_features`, but `next_sentence_labels` is int32 [n].
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


class UnmaskedRows(NamedTuple):
    ids: np.ndarray  # int32 [n, max_seq_length]
    word_starts: np.ndarray  # int32, likewise
    lengths: np.ndarray  # int32 [n], tokens
    input_mask: np.ndarray  # int32 [n, max_seq_length]
    input_type_ids: np.ndarray  # int32, likewise
    labels: np.ndarray  # int32 [n], of the pair


def parse_unmasked_records(
    serialized: list[bytes], records: PretrainingData, *, sep_id: int
) -> UnmaskedRows:
    """Parse into padded arrays; ValueError or tf.errors.InvalidArgumentError for other records."""
    names = file_names(records.feature_names)
    width = records.max_seq_length
    with tf.device("CPU:0"):
        parsed = tf.io.parse_example(
            tf.constant(serialized, tf.string, shape=[len(serialized)]),
            unmasked_feature_spec(records.feature_names),
        )
        ragged = [parsed[names[name]] for name in ("input_word_ids", "word_starts")]
        lengths = ragged[0].row_lengths().numpy()
        if (lengths != ragged[1].row_lengths().numpy()).any():
            raise ValueError(f"{names['word_starts']} is not one number per token")
        if ((lengths < 1) | (lengths > width)).any():
            raise ValueError(f"a record has not from 1 to {width} tokens")
        ids, starts = (
            tf.cast(rows.to_tensor(shape=[None, width]), tf.int32).numpy() for rows in ragged
        )
        labels = parsed[names["next_sentence_labels"]].numpy()[:, 0]
    if ids.max(initial=0) >= records.vocab_size or ids.min(initial=0) < 0:
        raise ValueError("an id is not one of the vocabulary's")
    mask = (np.arange(width) < lengths[:, None]).astype(np.int32)
    types = np.zeros_like(mask)
    if records.pair_task != "none":
        border = np.argmax(ids == sep_id, axis=1)
        types = mask * (np.arange(width) > border[:, None])
    return UnmaskedRows(
        ids=ids,
        word_starts=starts,
        lengths=lengths.astype(np.int32),
        input_mask=mask,
        input_type_ids=types.astype(np.int32),
        labels=labels.astype(np.int32),
    )


# The places in its graph that TensorFlow puts around a message.
_TENSORFLOWS_OWN = re.compile(r"^\{\{.*?\}\} (Name: <unknown>, )?| \[Op:\w+\].*$")


def find_damage(shards: list[str], records: PretrainingData) -> InputError | None:
    """Find the first masked record that is damaged or does not match the manifest."""
    for shard in shards:
        try:
            for block in index_shards([shard], compression=records.compression):
                serialized = read_records(block, compression=records.compression)
                _check_features(block, serialized, records)
        except InputError as error:
            return error
    return None


def _check_features(block: RecordBlock, serialized: list[bytes], records: PretrainingData) -> None:
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
