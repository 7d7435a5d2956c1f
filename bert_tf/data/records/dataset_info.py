"""Files, features and token counts of a directory of pretraining records."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import as_path, write_text_atomically
from bert_tf.config.bert import BertConfig
from bert_tf.data.records.example_bytes import frame_examples
from bert_tf.data.text.casing import Lowercase, lowercase_of

_FEATURES = (
    *("input_word_ids", "input_mask", "input_type_ids"),
    *("masked_lm_positions", "masked_lm_ids", "masked_lm_weights", "next_sentence_labels"),
)
# Names in files: of google-research/bert create_pretraining_data.py and of TF Model Garden v2.
FEATURE_NAMES: dict[str, dict[str, str]] = {
    "reference": {name: name for name in _FEATURES}
    | {"input_word_ids": "input_ids", "input_type_ids": "segment_ids"},
    "model-garden": {name: name for name in _FEATURES},
}
UNMASKED_FEATURES = ("input_word_ids", "word_starts", "next_sentence_labels")


def file_names(names: str) -> dict[str, str]:
    return {"word_starts": "word_starts", **FEATURE_NAMES[names]}


def shard_name(split: str, index: int, shards: int, *, compression: str = "none") -> str:
    """Name a shard: `train-00000-of-00064.tfrecord`, with `.gz` where compression is gzip."""
    ending = ".gz" if compression == "gzip" else ""
    return f"{split}-{index:05d}-of-{shards:05d}.tfrecord{ending}"


def encode_records(
    features: dict[str, np.ndarray], names: str = "reference", *, lengths: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Serialize features of `pretraining_features` or `unmasked_features` as framed TFRecords.

    `names` is a key of `FEATURE_NAMES`; `lengths`, int [rows], are the tokens of each unmasked
    sequence, written without padding. Returns as `frame_examples`.
    """
    stored = file_names(names)
    ragged = {} if lengths is None else dict.fromkeys(UNMASKED_FEATURES[:2], lengths)
    return frame_examples(
        {stored[name]: rows for name, rows in features.items()},
        {stored[name]: rows for name, rows in ragged.items()},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingData:
    """The key `records` of the manifest that `preprocess` writes."""

    directory: str  # where the shards and `vocab.txt` are
    max_seq_length: int  # tokens in a row
    max_predictions_per_seq: int  # masked tokens in a row
    feature_names: str = "reference"  # record schema, a key of `FEATURE_NAMES`
    compression: str = "none"  # "none" or "gzip"
    masking: str = "token"  # how the training records are masked; "dynamic" for not at all
    pair_task: str = "nsp"  # what next_sentence_labels mean, "nsp" or "sop"; "none" for nothing
    vocab_size: int  # entries of the vocabulary
    vocab_sha256: str  # its fingerprint (`bert_tf.data.text.vocab_file.vocab_fingerprint`)
    lowercase: Lowercase  # how text was tokenized
    train_shards: tuple[str, ...]  # file names
    eval_shards: tuple[str, ...] = ()  # file names
    train_examples: int = 0  # how many there are for training; 0 where the manifest does not say
    text_passes: int = 1  # how often these go over the text, each time with other masks
    notes: tuple[str, ...] = ()  # warnings of the health check when they were made

    @classmethod
    def from_manifest(
        cls, directory: str | Path, manifest: dict[str, Any] | None
    ) -> PretrainingData:
        """Read the description; raise UsageError if the manifest is missing or another."""
        if manifest is None:
            raise UsageError(
                f"{directory}: no manifest.json, so these are not finished pretraining data; "
                "make them with: bert-pipeline preprocess --output DIR"
            )
        records = manifest.get("records")
        required = {
            field.name
            for field in dataclasses.fields(cls)
            if field.default is dataclasses.MISSING and field.name != "directory"
        }
        if not isinstance(records, dict) or not required <= records.keys():
            raise UsageError(
                f"{directory}: the output of {manifest.get('command', 'another tool')!r}, not "
                "pretraining data; --data is the output of bert-pipeline preprocess"
            )
        known = {field.name for field in dataclasses.fields(cls)}
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in records.items()
            if key in known
        }
        if values.get("feature_names", "reference") not in FEATURE_NAMES:
            raise UsageError(
                f"{directory}: record schema {values['feature_names']!r} is not known; "
                f"expected one of {', '.join(FEATURE_NAMES)}"
            )
        values["lowercase"] = lowercase_of(values["lowercase"], records.get("keep_accents"))
        config = manifest.get("config", {})
        is_dynamic = config.get("masking") == "dynamic"
        values |= {
            "train_examples": manifest.get("counts", {}).get("examples", {}).get("train", 0),
            "text_passes": 1 if is_dynamic else config.get("dupe_factor", 1),
            "notes": tuple(manifest.get("notes", ())),
        }
        return cls(**values | {"directory": str(directory)})

    def paths(self, split: str) -> list[str]:
        names = {"train": self.train_shards, "eval": self.eval_shards}[split]
        return [f"{self.directory.rstrip('/')}/{name}" for name in names]

    @property
    def is_dynamic(self) -> bool:
        return self.masking == "dynamic"

    def check_model(self, config: BertConfig, source: str) -> None:
        """Raise UsageError unless vocabulary size and length fit the model that `source` names."""
        if config.vocab_size != self.vocab_size:
            raise UsageError(
                f"{source}: vocab_size is {config.vocab_size}, but the records in "
                f"{self.directory} were made with a vocabulary of {self.vocab_size} entries; "
                "use the vocabulary of the model for preprocess, or another model config"
            )
        if config.max_position_embeddings < self.max_seq_length:
            raise UsageError(
                f"{source}: max_position_embeddings is {config.max_position_embeddings}, but the "
                f"records in {self.directory} have max_seq_length {self.max_seq_length}; "
                "preprocess with a shorter --max-seq-length, or use another model config"
            )
        if config.type_vocab_size < 2 and self.pair_task != "none":
            raise UsageError(
                f"{source}: type_vocab_size is {config.type_vocab_size}, but the records in "
                f"{self.directory} have two segments; set it to 2"
            )


TOKEN_COUNTS_FILE = "piece_counts.txt"


def write_token_counts(counts: np.ndarray, directory: str | Path) -> None:
    text = "".join(f"{count}\n" for count in counts.tolist())
    write_text_atomically(as_path(directory) / TOKEN_COUNTS_FILE, text)


def read_token_counts(directory: str | Path, vocab_size: int) -> np.ndarray:
    """Read int64 [vocab_size]; raise InputError if the file is damaged or missing."""
    path = as_path(directory) / TOKEN_COUNTS_FILE
    try:
        counts = np.array(path.read_text(encoding="utf-8").split(), np.int64)
    except (OSError, ValueError):
        counts = np.zeros(0, np.int64)
    if len(counts) != vocab_size or (counts < 0).any():
        raise InputError(
            f"{path}: expected one whole number per line for each of the {vocab_size} entries of "
            "the vocabulary; make the data again"
        )
    return counts
