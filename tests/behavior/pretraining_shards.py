"""Small shards of pretraining records, whose numbers are in the records."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.data.records.dataset_info import PretrainingData, encode_records

LENGTH = 8  # tokens of a record
PREDICTIONS = 2


def description(directory: str | Path = "data", **changes: Any) -> PretrainingData:
    """Return the description that the manifest of these shards would give, with some changes."""
    values = {
        "directory": str(directory),
        "max_seq_length": LENGTH,
        "max_predictions_per_seq": PREDICTIONS,
        "vocab_size": 50,
        "vocab_sha256": "0",
        "lowercase": True,
        "train_shards": ("train-00000-of-00001.tfrecord",),
        **changes,
    }
    return PretrainingData(**values)


def features(first: int, count: int) -> dict[str, np.ndarray]:
    """Return records whose first masked id is their number."""
    numbers = np.arange(first, first + count, dtype=np.int32)[:, None]
    ids = np.tile(np.arange(LENGTH, dtype=np.int32), (count, 1))
    return {
        "input_word_ids": ids,
        "input_mask": (ids < 6).astype(np.int32),
        "input_type_ids": (ids > 3).astype(np.int32),
        "masked_lm_positions": np.tile(np.array([[1, 0]], np.int32), (count, 1)),
        "masked_lm_ids": np.concatenate([numbers, np.zeros_like(numbers)], axis=1),
        "masked_lm_weights": np.tile(np.array([[1.0, 0.0]], np.float32), (count, 1)),
        "next_sentence_labels": numbers % 2,
    }


def write_shards(
    directory: str | Path,
    sizes: Sequence[int],
    *,
    compression: str = "none",
    names: str = "reference",
) -> list[str]:
    """Write shards of consecutive records; return their paths.

    Args:
        directory: that exists.
        sizes: records of each shard.
        compression: gzip, or none.
        names: of the features, see `encode_records`.
    """
    paths = []
    first = 0
    for index, size in enumerate(sizes):
        data = encode_records(features(first, size), names)[0].tobytes() if size else b""
        path = Path(directory) / f"train-{index}"
        path.write_bytes(gzip.compress(data) if compression == "gzip" else data)
        paths.append(str(path))
        first += size
    return paths
