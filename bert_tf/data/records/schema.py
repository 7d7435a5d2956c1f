"""The contract of pretraining records: which features a TFRecord holds, under which names."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from bert_tf.data.records.example_bytes import frame_examples

FEATURE_NAMES: dict[str, dict[str, str]] = {
    "reference": {
        "input_word_ids": "input_ids",
        "input_mask": "input_mask",
        "input_type_ids": "segment_ids",
        "masked_lm_positions": "masked_lm_positions",
        "masked_lm_ids": "masked_lm_ids",
        "masked_lm_weights": "masked_lm_weights",
        "next_sentence_labels": "next_sentence_labels",
    },
    "model-garden": {
        "input_word_ids": "input_word_ids",
        "input_mask": "input_mask",
        "input_type_ids": "input_type_ids",
        "masked_lm_positions": "masked_lm_positions",
        "masked_lm_ids": "masked_lm_ids",
        "masked_lm_weights": "masked_lm_weights",
        "next_sentence_labels": "next_sentence_labels",
    },
}


UNMASKED_FEATURES = ("input_word_ids", "word_starts", "next_sentence_labels")


def file_names(names: str) -> dict[str, str]:
    """What each feature is called in files of a schema."""
    return {"word_starts": "word_starts", **FEATURE_NAMES[names]}


def unmasked_feature_spec(
    names: str = "reference",
) -> dict[str, tf.io.FixedLenFeature | tf.io.RaggedFeature]:
    """The features of a record that is masked when it is read, for `tf.io.parse_example`.

    Args:
        names: schema, as in `feature_spec`.

    Returns:
        By the name in the file: ids and word_starts (1 where a word begins) int64, one for each
        token of the sequence without padding; next_sentence_labels int64 [1].
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
    """The features of a pretraining record, for `tf.io.parse_example`.

    Args:
        max_seq_length: tokens in a row.
        max_predictions_per_seq: masked tokens in a row.
        names: "reference" for those of google-research/bert create_pretraining_data.py,
            "model-garden" for those of TF Model Garden v2.

    Returns:
        By the name in the file: ids, mask and types int64 [max_seq_length]; positions and ids of
        the masked int64 [max_predictions_per_seq], weights float32 of that shape;
        next_sentence_labels int64 [1], where 1 means a random second segment (swapped segments
        with pair_task sop; always 0 with none).
    """
    return {
        FEATURE_NAMES[names][feature]: tf.io.FixedLenFeature([length], dtype)
        for feature, length, dtype in (
            ("input_word_ids", max_seq_length, tf.int64),
            ("input_mask", max_seq_length, tf.int64),
            ("input_type_ids", max_seq_length, tf.int64),
            ("masked_lm_positions", max_predictions_per_seq, tf.int64),
            ("masked_lm_ids", max_predictions_per_seq, tf.int64),
            ("masked_lm_weights", max_predictions_per_seq, tf.float32),
            ("next_sentence_labels", 1, tf.int64),
        )
    }


def shard_name(split: str, index: int, shards: int, *, compression: str = "none") -> str:
    """`train-00000-of-00064.tfrecord`, with `.gz` where compression is gzip."""
    ending = ".gz" if compression == "gzip" else ""
    return f"{split}-{index:05d}-of-{shards:05d}.tfrecord{ending}"


def encode_records(
    features: dict[str, np.ndarray],
    names: str = "reference",
    *,
    lengths: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Serializes a batch of pretraining examples as framed TFRecords, ready to be appended.

    Args:
        features: what `pretraining_rows.pretraining_features` or `unmasked_features` returns.
        names: schema, as in `feature_spec`.
        lengths: int [rows], tokens of each sequence of unmasked features, which are written
            without padding.

    Returns:
        uint8 bytes of all records end to end, and where each begins: int64 [rows + 1].
    """
    stored = file_names(names)
    ragged = {} if lengths is None else dict.fromkeys(UNMASKED_FEATURES[:2], lengths)
    return frame_examples(
        {stored[name]: rows for name, rows in features.items()},
        {stored[name]: rows for name, rows in ragged.items()},
    )
