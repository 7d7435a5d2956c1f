"""What a directory of pretraining records holds, read from its manifest."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.data.records.schema import FEATURE_NAMES
from bert_tf.data.text.lowercase import Lowercase, lowercase_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingData:
    """The key `records` of the manifest that `preprocess` writes.

    Attributes:
        directory: where the shards and `vocab.txt` are.
        max_seq_length: tokens in a row.
        max_predictions_per_seq: masked tokens in a row.
        feature_names: record schema, a key of `FEATURE_NAMES`.
        compression: "none" or "gzip".
        vocab_size: entries of the vocabulary.
        vocab_sha256: its fingerprint (`bert_tf.data.text.vocab_file.vocab_fingerprint`).
        lowercase: how text was tokenized.
        masking: how the training records are masked; "dynamic" for not at all.
        pair_task: what next_sentence_labels mean, "nsp" or "sop"; "none" for nothing.
        train_shards, eval_shards: file names.
        train_examples: how many there are for training; 0 where the manifest does not say.
        text_passes: how often these go over the text, each time with other masks.
        notes: warnings of the health check when they were made.
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
        """Reads the description out of a manifest.

        Raises:
            UsageError: there is no manifest, or it is not one of pretraining data.
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
        notes = tuple(manifest.get("notes", ()))
        return cls(directory=str(directory), notes=notes, **{**values, **_amounts(manifest)})

    def paths(self, split: str) -> list[str]:
        """The shards of "train" or "eval"."""
        names = {"train": self.train_shards, "eval": self.eval_shards}[split]
        return [f"{self.directory.rstrip('/')}/{name}" for name in names]

    @property
    def is_dynamic(self) -> bool:
        """Whether masks of the training records are drawn when they are read."""
        return self.masking == "dynamic"

    def check_model(self, config: BertConfig, source: str) -> None:
        """Checks that these records fit a model.

        Args:
            config: the model's.
            source: what the user named the model by, for the message.

        Raises:
            UsageError: vocabulary size or length disagree; both sides are named.
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


def _amounts(manifest: dict[str, Any]) -> dict[str, int]:
    """What the counts and the config of a manifest say of the amount of text."""
    examples = manifest.get("counts", {}).get("examples", {}).get("train", 0)
    config = manifest.get("config", {})
    is_dynamic = config.get("masking") == "dynamic"
    passes = 1 if is_dynamic else config.get("dupe_factor", 1)
    return {"train_examples": examples, "text_passes": passes}
