"""Pretraining records as text: examples with their masks and labels shown, and statistics."""

from __future__ import annotations

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
from bert_tf.data.wordpiece import read_vocab
from pipeline.artifacts import read_manifest

_RECORDS_COUNTED = 10_000
_BAR_WIDTH = 40
_BARS = 8
_LABEL_WORDS = {"nsp": "a random second segment", "sop": "swapped segments"}
_SAID_OF_LABELS = {
    "nsp": ("the second segment is the next one", "the second segment is random"),
    "sop": ("the segments are in order", "the segments are swapped"),
}


def describe_records(path: str | Path, *, samples: int) -> list[str]:
    """Shows some examples of a data directory and the shape of its first 10,000 records a split.

    In a shown example a masked piece stands as `[MASK→cat]`, one replaced at random as `[dog→cat]`
    and one to be predicted but left as it is as `[cat]`; `##` pieces are joined to their words.
    Unmasked records are shown as they are.

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
        is_masked = split == "eval" or not data.is_dynamic
        records = _first_records(shards, data)
        try:
            features = _masked(records, data) if is_masked else _unmasked(records, data, vocab)
        except tf.errors.InvalidArgumentError as error:
            raise _damaged(data, error) from None
        lines.append(f"{split}: {len(shards)} shards of about {_size(shards)}")
        if not len(features["input_mask"]):
            continue
        lines += _statistics(split, features, data.pair_task)
        if split == "train":
            count = min(samples, len(features["input_mask"]))
            for row in range(count):
                lines += _example_lines(row, features, vocab, data)
    return lines


def _first_records(shards: list[str], data: PretrainingData) -> tf.Tensor:
    """The first records of all shards in turn, string [records]."""
    compression = "GZIP" if data.compression == "gzip" else ""
    missing = [shard for shard in shards if not Path(shard).is_file()]
    if missing:
        raise UsageError(f"{missing[0]}: is gone; make the data again with --overwrite")
    records: list[bytes] = []
    try:
        for shard in shards:
            dataset = tf.data.TFRecordDataset(shard, compression_type=compression)
            left = _RECORDS_COUNTED - len(records)
            records += itertools.islice(dataset.as_numpy_iterator(), left)
    except tf.errors.DataLossError as error:
        raise _damaged(data, error) from None
    return tf.constant(records, tf.string, shape=[len(records)])


def _damaged(data: PretrainingData, error: tf.errors.OpError) -> InputError:
    return InputError(
        f"{data.directory}: damaged records ({str(error).splitlines()[0]}); "
        "make the data again with --overwrite"
    )


def _masked(records: tf.Tensor, data: PretrainingData) -> dict[str, np.ndarray]:
    """The features of masked records by TF Model Garden's names."""
    spec = feature_spec(data.max_seq_length, data.max_predictions_per_seq, data.feature_names)
    parsed = tf.io.parse_example(records, spec)
    return {
        name: parsed[stored].numpy() for name, stored in FEATURE_NAMES[data.feature_names].items()
    }


def _unmasked(records: tf.Tensor, data: PretrainingData, vocab: list[str]) -> dict[str, np.ndarray]:
    """The features of unmasked records as if they were masked, but without targets."""
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


def _size(shards: list[str]) -> str:
    mean = sum(Path(shard).stat().st_size for shard in shards) / len(shards)
    return f"{mean / 1e6:.1f} MB"


def _statistics(split: str, features: dict[str, np.ndarray], pair_task: str) -> list[str]:
    lengths = features["input_mask"].sum(axis=1)
    targets = features["masked_lm_weights"].sum(axis=1).astype(np.int64)
    most_targets = features["masked_lm_weights"].shape[1]
    facts = [
        f"{lengths.mean():.1f} pieces and {targets.mean():.1f} targets a record"
        if most_targets
        else f"{lengths.mean():.1f} pieces a record, unmasked",
        f"{1 - lengths.mean() / features['input_mask'].shape[1]:.1%} padding",
    ]
    if pair_task in _LABEL_WORDS:
        share = features["next_sentence_labels"].mean()
        facts.append(f"{share:.1%} with {_LABEL_WORDS[pair_task]}")
    lines = [f"{split}: of the first {len(lengths):,} records: {', '.join(facts)}"]
    lines += _histogram(f"{split}: pieces a record", lengths, features["input_mask"].shape[1])
    if most_targets:
        lines += _histogram(f"{split}: targets a record", targets, most_targets)
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


def _example_lines(
    row: int, features: dict[str, np.ndarray], vocab: list[str], data: PretrainingData
) -> list[str]:
    length = int(features["input_mask"][row].sum())
    pieces = [vocab[piece] for piece in features["input_word_ids"][row, :length]]
    weights = features["masked_lm_weights"][row] > 0
    positions = features["masked_lm_positions"][row][weights]
    for position, target in zip(positions, features["masked_lm_ids"][row][weights], strict=True):
        shown = pieces[position].strip("[]") if pieces[position] == "[MASK]" else pieces[position]
        same = pieces[position] == vocab[target]
        pieces[position] = f"[{vocab[target]}]" if same else f"[{shown}→{vocab[target]}]"
    title = f"example {row + 1}: {length} pieces, {len(positions)} targets"
    if data.pair_task == "none":
        return [title, f"  text:   {_joined(pieces[1 : length - 1])}"]
    label = int(features["next_sentence_labels"][row, 0])
    border = length - int(features["input_type_ids"][row].sum())
    return [
        f"{title}, {_SAID_OF_LABELS[data.pair_task][label]}",
        f"  first:  {_joined(pieces[1 : border - 1])}",
        f"  second: {_joined(pieces[border : length - 1])}",
    ]


def _joined(pieces: list[str]) -> str:
    return " ".join(pieces).replace(" ##", "")
