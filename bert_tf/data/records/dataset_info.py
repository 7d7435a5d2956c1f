"""Description of a directory of pretraining records: files, features, token counts."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import as_path, write_text_atomically
from bert_tf.config.bert import BertConfig
from bert_tf.data.records.example_bytes import frame_examples
from bert_tf.data.text.casing import Lowercase, lowercase_of
from bert_tf.data.text.vocab_file import read_vocab_for_masking

_FEATURES = (
    "input_word_ids",
    "input_mask",
    "input_type_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "next_sentence_labels",
)
# Names of the features in files, by schema: "reference" is google-research/bert
# create_pretraining_data.py, "model-garden" is TF Model Garden v2, whose names are used in code.
FEATURE_NAMES: dict[str, dict[str, str]] = {
    "reference": {name: name for name in _FEATURES}
    | {"input_word_ids": "input_ids", "input_type_ids": "segment_ids"},
    "model-garden": {name: name for name in _FEATURES},
}
_RAGGED_FEATURES = ("input_word_ids", "word_starts")  # written without padding if unmasked


def file_names(names: str) -> dict[str, str]:
    """Return the name in files of each feature, masked or not, in a schema of `FEATURE_NAMES`."""
    return {"word_starts": "word_starts", **FEATURE_NAMES[names]}


def shard_name(split: str, index: int, shards: int, *, compression: str = "none") -> str:
    """Return the name of a shard: `train-00000-of-00064.tfrecord`, with `.gz` for gzip."""
    ending = ".gz" if compression == "gzip" else ""
    return f"{split}-{index:05d}-of-{shards:05d}.tfrecord{ending}"


def encode_records(
    features: dict[str, np.ndarray], names: str = "reference", *, lengths: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Serialize features as framed TFRecords, ready to be appended to a file.

    Args:
        features: result of `pretraining_features` or `unmasked_features`.
        names: schema, a key of `FEATURE_NAMES`.
        lengths: int [rows], tokens of each unmasked sequence, which is written without padding;
            None writes all values.

    Returns:
        Bytes and offsets, see `frame_examples`.
    """
    stored = file_names(names)
    ragged = {} if lengths is None else dict.fromkeys(_RAGGED_FEATURES, lengths)
    return frame_examples(
        {stored[name]: rows for name, rows in features.items()},
        {stored[name]: rows for name, rows in ragged.items()},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingData:
    """The key `records` of the manifest that `preprocess` writes.

    Attributes:
        directory: folder of the shards and of `vocab.txt`.
        max_seq_length: tokens of a row.
        max_predictions_per_seq: most masked tokens of a row.
        feature_names: schema of the records, a key of `FEATURE_NAMES`.
        compression: "none" or "gzip".
        masking: how the training records are masked; "dynamic" if they are not.
        pair_task: meaning of next_sentence_labels, "nsp" or "sop"; "none" if they have none.
        vocab_size: entries of the vocabulary.
        vocab_sha256: fingerprint of the vocabulary, see `vocab_fingerprint`.
        lowercase: how text was tokenized.
        train_shards, eval_shards: file names.
        train_examples: number of training examples; 0 if unknown.
        text_passes: number of passes over the text in the training examples, each with other masks.
        notes: warnings of the health check of the data.
    """

    directory: str
    max_seq_length: int
    max_predictions_per_seq: int
    feature_names: str = "reference"
    compression: str = "none"
    masking: str = "token"
    pair_task: str = "nsp"
    vocab_size: int
    vocab_sha256: str
    lowercase: Lowercase
    train_shards: tuple[str, ...]
    eval_shards: tuple[str, ...] = ()
    train_examples: int = 0
    text_passes: int = 1
    notes: tuple[str, ...] = ()

    @classmethod
    def from_manifest(
        cls, directory: str | Path, manifest: dict[str, Any] | None
    ) -> PretrainingData:
        """Read the description from the manifest of a directory.

        Args:
            directory: folder of the data.
            manifest: its manifest; None for a missing one.

        Raises:
            UsageError: the manifest is missing, or is not that of pretraining data.
        """
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

    @functools.cached_property
    def masking_vocab(self) -> list[str]:
        """Vocabulary of the records, for masks that are made when they are read."""
        return read_vocab_for_masking(Path(self.directory) / "vocab.txt")

    def paths(self, split: str) -> list[str]:
        """Return the paths of the shards of a split, "train" or "eval"."""
        names = {"train": self.train_shards, "eval": self.eval_shards}[split]
        return [f"{self.directory.rstrip('/')}/{name}" for name in names]

    @property
    def is_dynamic(self) -> bool:
        """Whether training records are masked when they are read."""
        return self.masking == "dynamic"

    def check_model(self, config: BertConfig, source: str) -> None:
        """Check that vocabulary size, length and segments fit a model.

        Args:
            config: config of the model.
            source: name of the model as the user gave it, for messages.

        Raises:
            UsageError: they do not fit.
        """
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
    """Write the count of each token in the corpus, int64 [vocabulary], a number per line."""
    text = "".join(f"{count}\n" for count in counts.tolist())
    write_text_atomically(as_path(directory) / TOKEN_COUNTS_FILE, text)


def read_token_counts(directory: str | Path, vocab_size: int) -> np.ndarray:
    """Read the counts of `write_token_counts`, int64 [vocab_size].

    Raises:
        InputError: the file is missing or damaged.
    """
    path = as_path(directory) / TOKEN_COUNTS_FILE
    try:
        counts = np.array(path.read_text(encoding="utf-8").split(), np.int64)
    except (OSError, ValueError, OverflowError):
        counts = np.zeros(0, np.int64)
    if len(counts) != vocab_size or (counts < 0).any():
        raise InputError(
            f"{path}: expected one whole number per line for each of the {vocab_size} entries of "
            "the vocabulary; make the data again"
        )
    return counts
