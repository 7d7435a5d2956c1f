"""Vocabulary and casing of a HuggingFace folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.base.errors import UsageError
from bert_tf.base.json_file import read_json_object
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIAL_TOKENS, read_vocab
from bert_tf.vocabulary.tokenizer_json import check_added_token, read_tokenizer_file

VOCAB = "vocab.txt"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
ADDED_TOKENS = "added_tokens.json"
# HuggingFace's tokenizers that split as BERT's, and those that follow `tokenizer.json`.
_TOKENIZER_CLASSES = (
    *(
        f"{name}Tokenizer{kind}"
        for name in ("Bert", "BertJapanese", "DistilBert", "Electra", "MobileBert", "PreTrained")
        for kind in ("", "Fast")
    ),
    "TokenizersBackend",
)


def read_folder_vocab(folder: Path) -> list[str]:
    """The entries by id, from `vocab.txt` or, where transformers 5 wrote none, `tokenizer.json`.

    Raises:
        UsageError: there is neither, they disagree, or it is no WordPiece vocabulary with BERT's
            specials.
        InputError: `tokenizer.json` is damaged.
    """
    path = folder / TOKENIZER
    if not (folder / VOCAB).is_file():
        if not path.is_file():
            raise UsageError(f"{folder}: no vocabulary; looked for {VOCAB} and {TOKENIZER}")
        return read_tokenizer_file(path).vocab
    vocab = read_vocab(folder / VOCAB)
    if path.is_file() and read_tokenizer_file(path).vocab != vocab:
        raise UsageError(
            f"{folder}: {VOCAB} and {TOKENIZER} have different entries; remove the one that is "
            "not the model's"
        )
    return vocab


def read_lowercase(folder: Path, vocab: list[str]) -> bool:
    """Whether texts are lower-cased before tokenization.

    `do_lower_case` of `tokenizer_config.json` is set, or the normalizer of `tokenizer.json`.
    Google's folders have neither file: there the vocabulary decides, which is cased where any piece
    but the bracketed specials holds a capital letter.

    Raises:
        InputError: one of the files is damaged.
        UsageError: one of them asks for another tokenization than BERT's, or they disagree.
    """
    found: dict[str, bool] = {}
    settings: dict[str, Any] = {}
    if (folder / TOKENIZER_CONFIG).is_file():
        settings = read_json_object(folder / TOKENIZER_CONFIG)
        if isinstance(settings.get("do_lower_case"), bool):
            found[TOKENIZER_CONFIG] = settings["do_lower_case"]
    if (folder / TOKENIZER).is_file():
        found[TOKENIZER] = read_tokenizer_file(folder / TOKENIZER).lowercase
    if len(set(found.values())) > 1:
        raise UsageError(
            f"{folder}: {TOKENIZER_CONFIG} has do_lower_case {found[TOKENIZER_CONFIG]}, "
            f"{TOKENIZER} lowercase {found[TOKENIZER]}; make them agree"
        )
    cased = any(piece != piece.lower() for piece in vocab if not piece.startswith("["))
    lowercase = next(iter(found.values()), not cased)
    _check_tokenization(folder / TOKENIZER_CONFIG, settings, lowercase=lowercase)
    if (folder / ADDED_TOKENS).is_file():
        for token in read_json_object(folder / ADDED_TOKENS):
            check_added_token(folder / ADDED_TOKENS, token)
    return lowercase


def _check_tokenization(path: Path, settings: dict[str, Any], *, lowercase: bool) -> None:
    """Checks for options of HuggingFace's tokenizers that give other tokens than BERT's rules."""
    options: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("tokenizer_class", (None, *_TOKENIZER_CLASSES)),
        ("strip_accents", (None, lowercase)),
        ("tokenize_chinese_chars", (None, True)),
        ("do_basic_tokenize", (None, True)),
        ("never_split", (None, [])),
        ("word_tokenizer_type", (None, "basic")),
        ("subword_tokenizer_type", (None, "wordpiece")),
        ("wordpieces_prefix", (None, CONTINUATION)),
        *((f"{piece[1:-1].lower()}_token", (None, piece)) for piece in SPECIAL_TOKENS),
    )
    for option, expected in options:
        value = settings.get(option)
        if isinstance(value, dict):  # a special with flags
            value = value.get("content")
        if value not in expected:
            raise UsageError(
                f"{path}: {option} is {value!r}, which gives other tokens than BERT's rules; "
                "the model can be used only if you change that, and accept the difference"
            )
    added = settings.get("added_tokens_decoder")
    for token in added.values() if isinstance(added, dict) else ():
        check_added_token(path, str(token.get("content") if isinstance(token, dict) else token))


def write_vocabulary_files(
    folder: Path, vocab: list[str], *, lowercase: bool, max_length: int
) -> None:
    """Writes `vocab.txt` and `tokenizer_config.json`, which BERT tokenizers load."""
    write_text_atomically(folder / VOCAB, "\n".join([*vocab, ""]))
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lowercase,
        "model_max_length": max_length,
        **{f"{piece[1:-1].lower()}_token": piece for piece in SPECIAL_TOKENS},
    }
    write_text_atomically(folder / TOKENIZER_CONFIG, json.dumps(settings, indent=2) + "\n")
