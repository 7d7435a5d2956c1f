"""Read the shape of a model from HuggingFace's `config.json` or Google's `bert_config.json`.

Every key of HuggingFace's `BertConfig` and `PretrainedConfig` (transformers 4.57) is read, known to
be harmless, or rejected; unknown keys are reported.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.checksums import check_sums
from bert_tf.base.errors import UsageError
from bert_tf.base.files import toml_beside
from bert_tf.base.json_files import read_json_object
from bert_tf.base.wording import shortened
from bert_tf.config.bert import BertConfig

CONFIG = "config.json"
TASK = "task.json"
GOOGLE_CONFIG = "bert_config.json"
_READ = frozenset(field.name for field in dataclasses.fields(BertConfig))
# Values with which a key changes nothing. Any other value means a model that is not supported.
_ONLY: dict[str, tuple[Any, ...]] = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "is_encoder_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, [], None),
    "quantization_config": ({}, None),
    "auto_map": ({}, None),  # classes of the model's own
    "pooler_type": ("first_token_transform", None),
}
_ARCHITECTURE = re.compile(r"(TF|Flax)?Bert(Model|LMHeadModel|For[A-Z]\w*)")


@functools.cache
def _known_keys() -> dict[str, set[str]]:
    return {
        kind: set(keys.split()) for kind, keys in toml_beside(__file__, "bert_keys.toml").items()
    }


def model_folder(path: str | Path) -> Path:
    """Return the folder of a model's files: the `best/` of a run, else the folder itself."""
    best = Path(path) / "best"
    return best if best.is_dir() else Path(path)


def read_task(folder: str | Path) -> dict[str, Any] | None:
    """Read `task.json`; return None without one.

    Raises:
        InputError: it is damaged.
    """
    # Labels that were edited by hand would no longer fit the logits.
    check_sums(Path(folder), {TASK}.__contains__)
    file = Path(folder) / TASK
    return read_json_object(file) if file.is_file() else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertDocument:
    """Content of a config file.

    Attributes:
        config: shape of the encoder.
        notes: keys that were ignored, a sentence each.
        has_own_decoder: whether the masked-LM head has embeddings of its own.
    """

    config: BertConfig
    notes: tuple[str, ...] = ()
    has_own_decoder: bool = False


def read_bert_document(path: str | Path) -> BertDocument:
    """Read a config file of HuggingFace or Google.

    Raises:
        UsageError: it does not describe a BERT encoder with `vocab_size`.
        InputError: it is not JSON.
    """
    return bert_document(path, read_json_object(path))


def bert_document(path: str | Path, document: dict[str, Any]) -> BertDocument:
    """Interpret the content of a config file; see `read_bert_document`."""
    if fault := next(_faults(document), None):
        raise UsageError(f"{path}: {fault}")
    fields = {key: value for key, value in document.items() if key in _READ}
    if _is_google(path, document) and fields.get("hidden_act", "gelu") == "gelu":
        fields["hidden_act"] = "gelu_new"  # the tanh approximation, which Google calls "gelu"
    try:
        config = BertConfig(**fields)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return BertDocument(
        config=config,
        notes=tuple(_notes(path, document, config)),
        has_own_decoder=document.get("tie_word_embeddings") is False,
    )


def _is_google(path: str | Path, document: dict[str, Any]) -> bool:
    """Return whether a config is one of google-research/bert."""
    if "model_type" in document:
        return False
    # Google's file has no mark of its own, but HuggingFace adds keys that Google does not know.
    has_other_keys = document.keys() & _known_keys()["huggingface_only"]
    return Path(path).name == GOOGLE_CONFIG or not has_other_keys


def _faults(document: dict[str, Any]) -> Iterator[str]:
    """Yield reasons why a document does not describe BERT's encoder."""
    for key, expected in _ONLY.items():
        if key in document and document[key] not in expected:
            yield (
                f"{key} is {shortened(document[key])}, which BERT's encoder does not support; "
                f"expected {expected[0]!r}"
            )
    named = document.get("architectures")
    if named and not _are_bert_classes(named):
        yield (
            f"architectures is {shortened(named)}; only classes of HuggingFace's BERT, such as "
            "BertModel and BertForMaskedLM, are supported"
        )
    for foreign in sorted(document.keys() & _known_keys()["of_other_models"]):
        yield f"{foreign} is not a key of BERT; only BERT is supported"
    narrow = document.get("embedding_size")
    if narrow is not None and narrow != document.get("hidden_size", BertConfig.hidden_size):
        yield (
            f"embedding_size is {shortened(narrow)}, which BERT does not have; it must equal "
            "hidden_size"
        )
    if "vocab_size" not in document:
        yield "expected a BERT config with the key 'vocab_size'"


def _are_bert_classes(names: Any) -> bool:
    """Return whether the value of `architectures` only lists classes of HuggingFace's BERT."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return False
    return all(map(_ARCHITECTURE.fullmatch, names))


def _notes(path: str | Path, document: dict[str, Any], config: BertConfig) -> list[str]:
    """Return a sentence that lists ignored keys, if there are any."""
    known = {*_READ, *_known_keys()["harmless"], *_ONLY, "embedding_size"}
    if document.get("classifier_dropout") in (None, config.hidden_dropout_prob):
        known |= {"classifier_dropout"}
    unread = sorted(document.keys() - known)
    if not unread:
        return []
    return [f"{path}: ignored, because BERT does not use it: {', '.join(map(repr, unread))}"]
