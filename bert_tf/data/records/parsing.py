"""Parse serialized pretraining records into model inputs, and find the first damaged one."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError
from bert_tf.data.records.dataset_info import FEATURE_NAMES, PretrainingData, file_names
from bert_tf.data.records.index import RecordBlock, index_shards, read_records


def unmasked_feature_spec(names: str = "reference") -> dict[str, Any]:
    """Return the features of unmasked records for `tf.io.parse_example`.

    Args:
        names: schema, a key of `FEATURE_NAMES`.

    Returns:
        By the name in files: ids and word_starts (1 where a word begins) int64, one for each token
            of the sequence, without padding; next_sentence_labels int64 [1].
    """
    stored = file_names(names)
    return {
        stored["input_word_ids"]: tf.io.RaggedFeature(tf.int64),
        stored["word_starts"]: tf.io.RaggedFeature(tf.int64),
        stored["next_sentence_labels"]: tf.io.FixedLenFeature([1], tf.int64),
    }


def feature_spec(
    max_seq_length: int, max_predictions_per_seq: int, names: str = "reference"
) -> dict[str, tf.io.FixedLenFeature]:
    """Return the features of masked records for `tf.io.parse_example`.

    Args:
        max_seq_length: tokens of a row.
        max_predictions_per_seq: most masked tokens of a row.
        names: schema, a key of `FEATURE_NAMES`.

    Returns:
        By the name in files, see `pretraining_features`. A label of 1 is a random second segment,
        or with pair_task "sop" swapped segments.
    """
    specs = {
        "input_word_ids": tf.io.FixedLenFeature([max_seq_length], tf.int64),
        "input_mask": tf.io.FixedLenFeature([max_seq_length], tf.int64),
        "input_type_ids": tf.io.FixedLenFeature([max_seq_length], tf.int64),
        "masked_lm_positions": tf.io.FixedLenFeature([max_predictions_per_seq], tf.int64),
        "masked_lm_ids": tf.io.FixedLenFeature([max_predictions_per_seq], tf.int64),
        "masked_lm_weights": tf.io.FixedLenFeature([max_predictions_per_seq], tf.float32),
        "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
    }
    return {stored: specs[name] for name, stored in FEATURE_NAMES[names].items()}


def parse_records(serialized: tf.Tensor, records: PretrainingData) -> dict[str, tf.Tensor]:
    """Parse masked records into model inputs.

    Args:
        serialized: string [n], bytes of `tf.train.Example`.
        records: description of the records.

    Returns:
        Features of `pretraining_features`, except that `next_sentence_labels` is int32 [n].
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
    """Unmasked records, padded.

    Attributes:
        ids: int32 [n, max_seq_length].
        word_starts: int32 [n, max_seq_length], 1 where a word begins.
        lengths: int32 [n], number of tokens.
        input_mask: int32 [n, max_seq_length], 1 on tokens and 0 on padding.
        input_type_ids: int32 [n, max_seq_length], 1 on the second segment.
        labels: int32 [n], label of the pair.
    """

    ids: np.ndarray
    word_starts: np.ndarray
    lengths: np.ndarray
    input_mask: np.ndarray
    input_type_ids: np.ndarray
    labels: np.ndarray


def parse_unmasked_records(
    serialized: list[bytes], records: PretrainingData, *, sep_id: int
) -> UnmaskedRows:
    """Parse unmasked records into padded arrays.

    Args:
        serialized: bytes of `tf.train.Example`.
        records: description of the records.
        sep_id: id of [SEP], after which the second segment begins.

    Raises:
        ValueError: a record does not match the description.
        tf.errors.InvalidArgumentError: a record has other features.
    """
    names = file_names(records.feature_names)
    width = records.max_seq_length
    with tf.device("CPU:0"):
        parsed = tf.io.parse_example(
            tf.constant(serialized, tf.string, shape=[len(serialized)]),
            unmasked_feature_spec(records.feature_names),
        )
        ragged_ids = parsed[names["input_word_ids"]]
        ragged_starts = parsed[names["word_starts"]]
        lengths = ragged_ids.row_lengths().numpy()
        if (lengths != ragged_starts.row_lengths().numpy()).any():
            raise ValueError(f"{names['word_starts']} is not one number per token")
        if ((lengths < 1) | (lengths > width)).any():
            raise ValueError(f"a record does not have 1 to {width} tokens")
        ids = tf.cast(ragged_ids.to_tensor(shape=[None, width]), tf.int32).numpy()
        starts = tf.cast(ragged_starts.to_tensor(shape=[None, width]), tf.int32).numpy()
        labels = parsed[names["next_sentence_labels"]].numpy()[:, 0]
    if ids.max(initial=0) >= records.vocab_size or ids.min(initial=0) < 0:
        raise ValueError("an id is not in the vocabulary")
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


# The place in the graph, which TensorFlow adds to a message
_PLACE_IN_GRAPH = re.compile(r"^\{\{.*?\}\} (Name: <unknown>, )?| \[Op:\w+\].*$")


def find_damage(shards: list[str], records: PretrainingData) -> InputError | None:
    """Return the error of the first masked record that is damaged or unlike the manifest.

    All records before it are read, so call this only after reading has failed. None if all records
    are sound.
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
    """Raise InputError for the first record that cannot be parsed."""
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
    """Return the reason why records cannot be parsed; None if they can."""
    try:
        with tf.device("CPU:0"):
            parse_records(tf.constant(serialized, tf.string), records)
    except tf.errors.InvalidArgumentError as error:
        return _PLACE_IN_GRAPH.sub("", error.message.splitlines()[0])
    return None
