"""The contract of pretraining records: which features a TFRecord holds, under which names."""

from __future__ import annotations

import numpy as np

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
        names: "reference" for those of google-research/bert create_pretraining_data.py,
            "model-garden" for those of TF Model Garden v2.
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
