"""Pretraining records as text: examples with their masks and labels shown, and statistics."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.config.errors import InputError, UsageError
from bert_tf.data.pretraining_data import PretrainingData
from bert_tf.data.records import FEATURE_NAMES, feature_spec
from bert_tf.data.wordpiece import read_vocab
from pipeline.artifacts import read_manifest

_RECORDS_COUNTED = 10_000
_BAR_WIDTH = 40
_BARS = 8


def describe_records(path: str | Path, *, samples: int) -> list[str]:
    """Shows some examples of a data directory and the shape of its first 10,000 records a split.

    In a shown example a masked piece stands as `[MASK→cat]`, one replaced at random as `[dog→cat]`
    and one to be predicted but left as it is as `[cat]`; `##` pieces are joined to their words.

    Args:
        path: output of `preprocess`.
        samples: examples to show.

    Raises:
        UsageError: not the output of `preprocess`, or a file of it is gone.
        InputError: a shard is damaged.
    """
    data = PretrainingData.from_manifest(path, read_manifest(path))
    vocab = read_vocab(Path(path) / "vocab.txt")
    lines = []
    for split in ("train", "eval"):
        shards = data.paths(split)
        if not shards:
            lines.append(f"{split}: no shards")
            continue
        features = _first_records(shards, data)
        lines.append(f"{split}: {len(shards)} shards of about {_size(shards)}")
        if not len(features["input_mask"]):
            continue
        lines += _statistics(split, features)
        if split == "train":
            count = min(samples, len(features["input_mask"]))
            lines += [line for row in range(count) for line in _example_lines(row, features, vocab)]
    return lines


def _first_records(shards: list[str], data: PretrainingData) -> dict[str, np.ndarray]:
    """The features, by TF Model Garden's names, of the first records of all shards in turn."""
    compression = "GZIP" if data.compression == "gzip" else ""
    spec = feature_spec(data.max_seq_length, data.max_predictions_per_seq, data.feature_names)
    missing = [shard for shard in shards if not Path(shard).is_file()]
    if missing:
        raise UsageError(f"{missing[0]}: is gone; make the data again with --overwrite")
    records: list[bytes] = []
    try:
        for shard in shards:
            dataset = tf.data.TFRecordDataset(shard, compression_type=compression)
            left = _RECORDS_COUNTED - len(records)
            records += itertools.islice(dataset.as_numpy_iterator(), left)
        parsed = tf.io.parse_example(tf.constant(records, tf.string), spec)
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise InputError(
            f"{data.directory}: damaged records ({str(error).splitlines()[0]}); "
            "make the data again with --overwrite"
        ) from None
    return {
        name: parsed[stored].numpy() for name, stored in FEATURE_NAMES[data.feature_names].items()
    }


def _size(shards: list[str]) -> str:
    mean = sum(Path(shard).stat().st_size for shard in shards) / len(shards)
    return f"{mean / 1e6:.1f} MB"


def _statistics(split: str, features: dict[str, np.ndarray]) -> list[str]:
    lengths = features["input_mask"].sum(axis=1)
    targets = features["masked_lm_weights"].sum(axis=1).astype(np.int64)
    random_share = features["next_sentence_labels"].mean()
    lines = [
        f"{split}: of the first {len(lengths):,} records: "
        f"{lengths.mean():.1f} pieces and {targets.mean():.1f} targets a record, "
        f"{1 - lengths.mean() / features['input_mask'].shape[1]:.1%} padding, "
        f"{random_share:.1%} with a random second segment"
    ]
    lines += _histogram(f"{split}: pieces a record", lengths, features["input_mask"].shape[1])
    lines += _histogram(
        f"{split}: targets a record", targets, features["masked_lm_weights"].shape[1]
    )
    return lines


def _histogram(title: str, values: np.ndarray, highest: int) -> list[str]:
    """A bar for each of some equal ranges from 0 to the highest possible value.

    | values  | highest | lines                                      |
    |---------|---------|--------------------------------------------|
    | 1, 2, 2 | 2       | "1: 33.3%" and "2: 66.7%", with their bars |
    """
    width = -(-highest // _BARS)
    starts = np.arange(1, highest + 1, width)
    counts = np.bincount(np.maximum(values - 1, 0) // width, minlength=len(starts))
    lines = [title]
    for start, share in zip(starts, counts / len(values), strict=True):
        end = min(start + width - 1, highest)
        label = f"{start}" if start == end else f"{start} to {end}"
        bar = "#" * round(share * _BAR_WIDTH)
        lines.append(f"  {label:>10}: {share:6.1%} {bar}".rstrip())
    return lines


def _example_lines(row: int, features: dict[str, np.ndarray], vocab: list[str]) -> list[str]:
    length = int(features["input_mask"][row].sum())
    pieces = [vocab[piece] for piece in features["input_word_ids"][row, :length]]
    weights = features["masked_lm_weights"][row] > 0
    positions = features["masked_lm_positions"][row][weights]
    for position, target in zip(positions, features["masked_lm_ids"][row][weights], strict=True):
        shown = pieces[position].strip("[]") if pieces[position] == "[MASK]" else pieces[position]
        same = pieces[position] == vocab[target]
        pieces[position] = f"[{vocab[target]}]" if same else f"[{shown}→{vocab[target]}]"
    is_random = features["next_sentence_labels"][row, 0] == 1
    border = length - int(features["input_type_ids"][row].sum())
    return [
        f"example {row + 1}: {length} pieces, {len(positions)} targets, "
        f"the second segment is {'random' if is_random else 'the next one'}",
        f"  first:  {_joined(pieces[1 : border - 1])}",
        f"  second: {_joined(pieces[border : length - 1])}",
    ]


def _joined(pieces: list[str]) -> str:
    return " ".join(pieces).replace(" ##", "")
