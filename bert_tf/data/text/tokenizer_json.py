"""Reads HuggingFace's `tokenizer.json` if all parts that decide ids are BERT's."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.json_files import read_json_object
from bert_tf.base.wording import shortened
from bert_tf.data.text.casing import Lowercase, lowercase_of
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIAL_TOKENS, check_specials

_UNK, _CLS, _SEP = "[UNK]", "[CLS]", "[SEP]"
# BERT's values, which are also those of a file that leaves a key out.
_NORMALIZER = {"clean_text": True, "handle_chinese_chars": True}
_MODEL = {
    "unk_token": _UNK,
    "continuing_subword_prefix": CONTINUATION,
    "max_input_chars_per_word": 100,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizerFile:
    vocab: list[str]  # entries by id
    lowercase: Lowercase  # whether texts are lower-cased, and accents stripped
    added: dict[str, int]  # ids of added tokens besides BERT's specials


def read_tokenizer_file(path: Path) -> TokenizerFile:
    """Read a `tokenizer.json`; UsageError for another tokenization, InputError for damage."""
    document = read_json_object(path)
    vocab = _read_model(path, document.get("model"))
    lowercase = _read_normalizer(path, _only_step(document.get("normalizer"), "normalizers"))
    pre_tokenizer = _only_step(document.get("pre_tokenizer"), "pretokenizers")
    _check_type(path, "pre_tokenizer", pre_tokenizer, "BertPreTokenizer")
    added = _read_added_tokens(path, document.get("added_tokens"), vocab)
    _check_post_processor(path, _only_step(document.get("post_processor"), "processors"), vocab)
    return TokenizerFile(vocab=vocab, lowercase=lowercase, added=added)


def _only_step(part: Any, steps: str) -> Any:
    while isinstance(part, dict) and part.get("type") == "Sequence":
        inner = part.get(steps)
        if not isinstance(inner, list) or len(inner) != 1:
            break
        part = inner[0]
    return part


def unsupported(path: Path, part: str, value: Any) -> UsageError:
    return UsageError(
        f"{path}: {part} is {_named(value)}, which gives other tokens than BERT's rules; "
        "the model can be used only if you change that, and accept the difference"
    )


def _named(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        steps = next((steps for steps in value.values() if isinstance(steps, list)), [])
        names = [_named(step) for step in steps[:5] if isinstance(step, dict) and "type" in step]
        return str(value["type"])[:40] + (f" of {', '.join(names)}"[:80] if names else "")
    return shortened(value)


def _read_model(path: Path, model: Any) -> list[str]:
    kind = model.get("type", "WordPiece") if isinstance(model, dict) else model
    if (
        not isinstance(model, dict)
        or kind != "WordPiece"
        or not isinstance(model.get("vocab"), dict)
    ):
        raise UsageError(f"{path}: expected a WordPiece tokenizer, got {_named(kind)}")
    for key, expected in _MODEL.items():
        if model.get(key, expected) != expected:
            raise unsupported(path, f"model.{key}", model[key])
    ids: dict[str, Any] = model["vocab"]
    if not all(type(number) is int for number in ids.values()):
        raise InputError(f"{path}: damaged; expected a number for every entry")
    vocab = sorted(ids, key=lambda piece: ids[piece])
    if [ids[piece] for piece in vocab] != list(range(len(vocab))):
        raise UsageError(f"{path}: ids must run from 0 to {len(vocab) - 1}, each once")
    check_specials(path, ids)
    return vocab


def _read_normalizer(path: Path, normalizer: Any) -> Lowercase:
    _check_type(path, "normalizer", normalizer, "BertNormalizer")
    for key, expected in _NORMALIZER.items():
        if normalizer.get(key, expected) is not expected:
            raise unsupported(path, f"normalizer.{key}", normalizer[key])
    lowercase = normalizer.get("lowercase")
    if not isinstance(lowercase, bool):
        raise unsupported(path, "normalizer.lowercase", lowercase)
    strips = normalizer.get("strip_accents")
    if strips is True and not lowercase:
        raise unsupported(path, "normalizer.strip_accents", strips)
    return lowercase_of(lowercase, lowercase and strips is False)


def _check_type(path: Path, part: str, value: Any, kind: str) -> None:
    if not isinstance(value, dict) or value.get("type") != kind:
        raise unsupported(path, part, value)


def _read_added_tokens(path: Path, tokens: Any, vocab: list[str]) -> dict[str, int]:
    added: dict[str, int] = {}
    for token in tokens or []:
        if (
            not isinstance(token, dict)
            or not isinstance(token.get("content"), str)
            or type(token.get("id")) is not int
            or token["id"] < 0
        ):
            raise InputError(f"{path}: damaged; expected a list of added tokens")
        content, number = token["content"], token["id"]
        if number < len(vocab) and vocab[number] != content:
            raise unsupported(path, f"the id of the added token {content}", number)
        if content not in SPECIAL_TOKENS:
            added[content] = number
    return added


def _check_post_processor(path: Path, processor: Any, vocab: list[str]) -> None:
    ids = {piece: vocab.index(piece) for piece in (_CLS, _SEP)}
    parts = [("SpecialToken", _CLS, 0), ("Sequence", "A", 0), ("SpecialToken", _SEP, 0)]
    parts += [("Sequence", "B", 1), ("SpecialToken", _SEP, 1)]
    pair = [{kind: {"id": name, "type_id": segment}} for kind, name, segment in parts]
    template: dict[str, Any] = {"type": "TemplateProcessing", "single": pair[:3], "pair": pair}
    bert = {"type": "BertProcessing", "cls": [_CLS, ids[_CLS]], "sep": [_SEP, ids[_SEP]]}
    template["special_tokens"] = {
        piece: {"id": piece, "ids": [number], "tokens": [piece]} for piece, number in ids.items()
    }
    given = processor if isinstance(processor, dict) else {}
    if given != bert and {key: given.get(key) for key in template} != template:
        raise unsupported(path, "post_processor", processor)
