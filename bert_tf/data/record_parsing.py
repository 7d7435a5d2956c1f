"""Serialised pretraining records to the arrays the model takes."""

from __future__ import annotations

import tensorflow as tf

from bert_tf.data.pretraining_data import PretrainingData
from bert_tf.data.records import FEATURE_NAMES, feature_spec


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
