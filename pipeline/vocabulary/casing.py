"""The casing of texts for a vocabulary: that with which the vocabulary was made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import RemotePath
from bert_tf.config.sections.data import PreprocessConfig, VocabConfig
from bert_tf.data.text.casing import KEEP_ACCENTS, Lowercase, lowercase_of, vocabulary_casing
from bert_tf.data.text.vocabulary_files import (
    TOKENIZER,
    TOKENIZER_CONFIG,
    VOCAB,
    read_folder_vocabulary,
)
from pipeline.beam.stored_path import path_of
from pipeline.outputs.manifest import manifest_path, read_manifest

ConfigType = TypeVar("ConfigType", VocabConfig, PreprocessConfig)


def with_casing(config: ConfigType, source: str, vocab: Sequence[str]) -> tuple[ConfigType, str]:
    """Return the config with the casing to use, and the note of `decide_lowercase`.

    Args:
        config: of `vocab` or `preprocess`; its keys decide if they are given.
        source: file of the vocabulary.
        vocab: its entries.

    Raises:
        UsageError: see `decide_lowercase`.
    """
    wanted: Lowercase | None = None
    if config.lowercase is not None or config.keep_accents:
        wanted = lowercase_of(config.lowercase, config.keep_accents)
    lowercase, note = decide_lowercase(wanted, source, vocab)
    keeps_accents = lowercase == KEEP_ACCENTS
    return (
        dataclasses.replace(config, lowercase=bool(lowercase), keep_accents=keeps_accents),
        note,
    )


def decide_lowercase(
    wanted: Lowercase | None, source: str, vocab: Sequence[str]
) -> tuple[Lowercase, str]:
    """Decide whether to lower-case texts before looking them up in a vocabulary.

    Its manifest decides, or the tokenizer's files beside it in the folder of a model; without
    either, its entries.

    Args:
        wanted: the user's choice; None to follow the vocabulary.
        source: file of the vocabulary.
        vocab: its entries.

    Returns:
        The choice, and a sentence for the user if only the entries show that it is cased.

    Raises:
        UsageError: the user's choice is the opposite, or the tokenizer's files contradict each
            other.
    """
    recorded = _recorded_lowercase(source)
    if recorded is not None:
        lowercase, file = recorded
        if wanted not in (None, lowercase):
            raise UsageError(_contradiction(source, lowercase, file, wanted))
        return lowercase, ""
    casing = vocabulary_casing(vocab)
    has_small_letters = any(entry != entry.upper() for entry in vocab if entry[0] != "[")
    is_lowercase = has_small_letters and not casing.is_cased and not casing.has_accents
    if (wanted and casing.is_cased) or (wanted is False and is_lowercase):
        raise UsageError(_contradiction(source, not casing.is_cased, casing.reason, wanted))
    if wanted is not None:
        return wanted, ""
    if not casing.is_cased:
        return True, ""
    return False, (
        f"{source}: has no manifest, and {casing.reason}: texts keep their capital letters and "
        "accents, as with --cased"
    )


def _recorded_lowercase(source: str) -> tuple[Lowercase, str] | None:
    """Return the casing that a file states, and the name of the file; None if none does."""
    path = path_of(source)
    settings = (read_manifest(source) or {}).get("config", {})
    if isinstance(settings.get("lowercase"), bool):
        return _lowercase_in(settings), manifest_path(source).name
    if path.name != VOCAB or isinstance(path, RemotePath):
        return None
    with suppress(InputError):  # another tool's manifest.json
        records = (read_manifest(path.parent) or {}).get("records", {})
        if isinstance(records.get("lowercase"), bool):
            return _lowercase_in(records), manifest_path(path.parent).name
    for folder in (path.parent, path.parent / "best"):
        for name in (TOKENIZER_CONFIG, TOKENIZER):
            if (folder / name).is_file():
                return read_folder_vocabulary(folder).lowercase, name
    return None


def _lowercase_in(settings: Mapping[str, Any]) -> Lowercase:
    return lowercase_of(settings["lowercase"], settings.get("keep_accents"))


def _contradiction(source: str, lowercase: Lowercase, evidence: str, wanted: Lowercase) -> str:
    """Return the message for a choice that contradicts the casing of a vocabulary."""
    casings = {False: "cased", True: "lower-cased", KEEP_ACCENTS: "lower-cased, with accents"}
    flags = {False: "--cased", True: "--lowercase", KEEP_ACCENTS: "--keep-accents"}
    flag = flags[wanted]
    return (
        f"{source}: the vocabulary is {casings[lowercase]} ({evidence}), so {flag} would make many "
        f"words [UNK]; leave {flag} out, or give another vocabulary"
    )
