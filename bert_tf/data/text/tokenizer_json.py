"""Read tokenizer files of HuggingFace whose parts give the ids of BERT's rules; refuse others.

The files are `tokenizer.json`, and the settings in `tokenizer_config.json` and `config.json`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.json_files import JsonFolder
from bert_tf.base.wording import shortened
from bert_tf.data.text.casing import Lowercase, lowercase_of
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIAL_TOKENS, check_specials

TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
_CONFIG = "config.json"
_UNK = "[UNK]"
_CLS = "[CLS]"
_SEP = "[SEP]"
# Values of BERT, which are also the defaults of keys that a file leaves out.
_NORMALIZER = {"clean_text": True, "handle_chinese_chars": True}
_MODEL = {
    "unk_token": _UNK,
    "continuing_subword_prefix": CONTINUATION,
    "max_input_chars_per_word": 100,
}
# HuggingFace's tokenizers that split as BERT's, and those that follow `tokenizer.json`.
_TOKENIZER_CLASSES = (
    "BertTokenizer",
    "BertTokenizerFast",
    "BertJapaneseTokenizer",
    "BertJapaneseTokenizerFast",
    "DistilBertTokenizer",
    "DistilBertTokenizerFast",
    "ElectraTokenizer",
    "ElectraTokenizerFast",
    "MobileBertTokenizer",
    "MobileBertTokenizerFast",
    "PreTrainedTokenizer",
    "PreTrainedTokenizerFast",
    "TokenizersBackend",
)

# Limits for the name of an unknown part in a message
_NAME_CHARACTERS = 40
_NAMED_STEPS = 5
_STEPS_CHARACTERS = 80
_JAPANESE = ("BertJapaneseTokenizer", "BertJapaneseTokenizerFast")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizerFile:
    """Content of a `tokenizer.json`.

    Attributes:
        vocab: entries in the order of their ids.
        lowercase: whether texts are lower-cased, and accents stripped.
        added: ids of added tokens, without BERT's special tokens.
        cuts_left: whether texts that are too long lose their beginning.
    """

    vocab: list[str]
    lowercase: Lowercase
    added: dict[str, int]
    cuts_left: bool = False


def read_tokenizer_file(files: JsonFolder) -> TokenizerFile | None:
    """Read the `tokenizer.json` of a folder; None if there is none.

    Raises:
        UsageError: it describes another tokenization than that of BERT.
        InputError: it is damaged.
    """
    if TOKENIZER not in files:
        return None
    path = files.path / TOKENIZER
    document = files[TOKENIZER]
    vocab = _read_model(path, document.get("model"))
    lowercase = _read_normalizer(path, _only_step(document.get("normalizer"), "normalizers"))
    pre_tokenizer = _only_step(document.get("pre_tokenizer"), "pretokenizers")
    _check_type(path, "pre_tokenizer", pre_tokenizer, "BertPreTokenizer")
    added = _read_added_tokens(path, document.get("added_tokens"), vocab)
    _check_post_processor(path, _only_step(document.get("post_processor"), "processors"), vocab)
    truncation = document.get("truncation")
    cuts_left = isinstance(truncation, dict) and truncation.get("direction") == "Left"
    return TokenizerFile(vocab=vocab, lowercase=lowercase, added=added, cuts_left=cuts_left)


def check_settings(files: JsonFolder, *, lowercase: Lowercase) -> None:
    """Check that the settings of a folder's tokenizer give the tokens of BERT's rules.

    `config.json` may name a tokenizer, too, which counts if `tokenizer_config.json` names none.

    Args:
        files: of the folder; each of the two may be missing.
        lowercase: whether texts are lower-cased before tokenization, and how.

    Raises:
        UsageError: a setting gives other tokens.
        InputError: a file is damaged.
    """
    settings = files.get(TOKENIZER_CONFIG) or {}
    allowed: dict[str, tuple[Any, ...]] = {
        "tokenizer_class": _TOKENIZER_CLASSES,
        "strip_accents": (lowercase is True,),
        "tokenize_chinese_chars": (True,),
        "do_basic_tokenize": (True,),
        "never_split": ([],),
        "word_tokenizer_type": ("basic",),
        "subword_tokenizer_type": ("wordpiece",),
        "wordpieces_prefix": (CONTINUATION,),
        **{special_token_key(piece): (piece,) for piece in SPECIAL_TOKENS},
    }
    for option, values in allowed.items():
        value = settings.get(option)
        if isinstance(value, dict):  # a special token with flags
            value = value.get("content")
        if value is not None and value not in values:
            raise _unsupported(files.path / TOKENIZER_CONFIG, option, value)
    file = TOKENIZER_CONFIG
    named = settings.get("tokenizer_class")
    if not named:
        file = _CONFIG
        named = (files.get(_CONFIG) or {}).get("tokenizer_class")
    if named is None:
        return
    # By default, Japanese texts are split by rules of their own.
    has_own_rules = named in _JAPANESE and settings.get("word_tokenizer_type") != "basic"
    if named not in _TOKENIZER_CLASSES or has_own_rules:
        raise _unsupported(files.path / file, "tokenizer_class", named)


def special_token_key(piece: str) -> str:
    """Return the key of a special token in `tokenizer_config.json`, such as `cls_token`."""
    return f"{piece[1:-1].lower()}_token"


def _only_step(part: Any, steps: str) -> Any:
    """Return the only step of a `Sequence`; any other part as it is."""
    while isinstance(part, dict) and part.get("type") == "Sequence":
        inner = part.get(steps)
        if not isinstance(inner, list) or len(inner) != 1:
            break
        part = inner[0]
    return part


def _unsupported(path: Path, part: str, value: Any) -> UsageError:
    """Return the error for a part of a tokenizer that gives other tokens than BERT's rules."""
    return UsageError(
        f"{path}: {part} is {_named(value)}, which gives other tokens than BERT's rules; "
        "the model can be used only if you change that, and accept the difference"
    )


def _named(value: Any) -> str:
    """Name a part by its type, a sequence also by the types of its steps; show other values."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return shortened(value)
    name = str(value["type"])[:_NAME_CHARACTERS]
    steps = next((steps for steps in value.values() if isinstance(steps, list)), [])
    names = [
        _named(step) for step in steps[:_NAMED_STEPS] if isinstance(step, dict) and "type" in step
    ]
    if not names:
        return name
    return name + f" of {', '.join(names)}"[:_STEPS_CHARACTERS]


def _read_model(path: Path, model: Any) -> list[str]:
    """Return the entries in the order of their ids."""
    if not isinstance(model, dict):
        raise UsageError(f"{path}: expected a WordPiece tokenizer, got {_named(model)}")
    kind = model.get("type", "WordPiece")
    if kind != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise UsageError(f"{path}: expected a WordPiece tokenizer, got {_named(kind)}")
    for key, expected in _MODEL.items():
        if model.get(key, expected) != expected:
            raise _unsupported(path, f"model.{key}", model[key])
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
            raise _unsupported(path, f"normalizer.{key}", normalizer[key])
    lowercase = normalizer.get("lowercase")
    if not isinstance(lowercase, bool):
        raise _unsupported(path, "normalizer.lowercase", lowercase)
    strips = normalizer.get("strip_accents")
    if strips is True and not lowercase:
        raise _unsupported(path, "normalizer.strip_accents", strips)
    return lowercase_of(lowercase, lowercase and strips is False)


def _check_type(path: Path, part: str, value: Any, kind: str) -> None:
    if not isinstance(value, dict) or value.get("type") != kind:
        raise _unsupported(path, part, value)


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
        content = token["content"]
        number = token["id"]
        if number < len(vocab) and vocab[number] != content:
            raise _unsupported(path, f"the id of the added token {content}", number)
        if content not in SPECIAL_TOKENS:
            added[content] = number
    return added


def _check_post_processor(path: Path, processor: Any, vocab: list[str]) -> None:
    """Accept `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`, with the second text in segment 1."""
    ids = {piece: vocab.index(piece) for piece in (_CLS, _SEP)}
    bert = {"type": "BertProcessing", "cls": [_CLS, ids[_CLS]], "sep": [_SEP, ids[_SEP]]}
    single = [
        {"SpecialToken": {"id": _CLS, "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": _SEP, "type_id": 0}},
    ]
    second = [
        {"Sequence": {"id": "B", "type_id": 1}},
        {"SpecialToken": {"id": _SEP, "type_id": 1}},
    ]
    template = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": single + second,
        "special_tokens": {
            piece: {"id": piece, "ids": [number], "tokens": [piece]}
            for piece, number in ids.items()
        },
    }
    settings = processor if isinstance(processor, dict) else {}
    is_bert_template = {key: settings.get(key) for key in template} == template
    if settings != bert and not is_bert_template:
        raise _unsupported(path, "post_processor", processor)
