"""Whether texts are lower-cased for a vocabulary: as it was made, which is known or seen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.remote_path import RemotePath
from bert_tf.data.text.casing import vocabulary_casing
from bert_tf.vocabulary.files import TOKENIZER, TOKENIZER_CONFIG, VOCAB, read_folder_vocabulary
from pipeline.beam.stored_path import path_of
from pipeline.outputs.manifest import manifest_path, read_manifest


def decide_lowercase(
    asked: bool | None, source: str, vocab: Sequence[str]
) -> tuple[bool, str | None]:
    """Decides whether to lower-case texts before looking them up in a vocabulary.

    Its manifest decides, or the tokenizer's files beside it in the folder of a model; without
    either, its entries.

    Args:
        asked: what the user asks for; None for nothing.
        source: file of the vocabulary.
        vocab: its entries.

    Returns:
        Whether to, and a sentence for the user where the entries alone say that it is cased.

    Raises:
        UsageError: the user asks for the opposite; the tokenizer's files contradict each other.
    """
    recorded = _recorded_lowercase(source)
    if recorded is not None:
        lowercase, where = recorded
        if asked not in (None, lowercase):
            raise UsageError(_contradiction(source, lowercase, where))
        return lowercase, None
    casing = vocabulary_casing(vocab)
    has_small_letters = any(entry != entry.upper() for entry in vocab if entry[0] != "[")
    is_lowercase = has_small_letters and not casing.is_cased and not casing.has_accents
    if (asked is True and casing.is_cased) or (asked is False and is_lowercase):
        raise UsageError(_contradiction(source, not casing.is_cased, casing.reason))
    if asked is not None:
        return asked, None
    if not casing.is_cased:
        return True, None
    return False, (
        f"{source}: has no manifest, and {casing.reason}: texts keep their capital letters and "
        "accents, as with --cased"
    )


def _recorded_lowercase(source: str) -> tuple[bool, str] | None:
    """What was recorded when the vocabulary was made or used, and by which file."""
    path = path_of(source)
    made = read_manifest(source)
    if made is not None and isinstance(made.get("config", {}).get("lowercase"), bool):
        return made["config"]["lowercase"], manifest_path(source).name
    if path.name != VOCAB or isinstance(path, RemotePath):
        return None
    with suppress(InputError):  # another tool's manifest.json
        records = (read_manifest(path.parent) or {}).get("records", {})
        if isinstance(records.get("lowercase"), bool):
            return records["lowercase"], manifest_path(path.parent).name
    for folder in (path.parent, path.parent / "best"):
        for name in (TOKENIZER_CONFIG, TOKENIZER):
            if (folder / name).is_file():
                return read_folder_vocabulary(folder).lowercase, name
    return None


def _contradiction(source: str, lowercase: bool, why: str) -> str:
    made, asked = ("lower-cased", "cased") if lowercase else ("cased", "lowercase")
    return (
        f"{source}: the vocabulary is {made} ({why}), so --{asked} would make many words [UNK]; "
        f"leave --{asked} out, or give another vocabulary"
    )
