"""Vocabulary and casing of a HuggingFace folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bert_tf.config.errors import UsageError
from bert_tf.config.json_file import read_json_object
from bert_tf.data.atomic import write_text_atomically
from bert_tf.data.vocab_file import SPECIAL_PIECES, read_vocab

VOCAB = "vocab.txt"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"


def read_folder_vocab(folder: Path) -> list[str]:
    """The pieces by id, from `vocab.txt` or, where transformers 5 wrote none, `tokenizer.json`.

    Raises:
        UsageError: there is neither, or it is no WordPiece vocabulary with BERT's specials.
        InputError: `tokenizer.json` is damaged.
    """
    if (folder / VOCAB).is_file():
        return read_vocab(folder / VOCAB)
    path = folder / TOKENIZER
    if not path.is_file():
        raise UsageError(f"{folder}: no vocabulary; looked for {VOCAB} and {TOKENIZER}")
    model = read_json_object(path).get("model", {})
    if model.get("type", "WordPiece") != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise UsageError(f"{path}: expected a WordPiece tokenizer, got {model.get('type')!r}")
    ids: dict[str, int] = model["vocab"]
    vocab = sorted(ids, key=lambda piece: ids[piece])
    if [ids[piece] for piece in vocab] != list(range(len(vocab))):
        raise UsageError(f"{path}: ids must run from 0 to {len(vocab) - 1}, each once")
    missing = [piece for piece in SPECIAL_PIECES if piece not in ids]
    if missing:
        raise UsageError(
            f"{path}: lacks {' '.join(missing)}; a BERT vocabulary holds {' '.join(SPECIAL_PIECES)}"
        )
    return vocab


def read_lowercase(folder: Path, vocab: list[str]) -> bool:
    """Whether texts are lower-cased before tokenisation.

    `do_lower_case` of `tokenizer_config.json` says so, or the normaliser of `tokenizer.json`.
    Google's folders have neither file: there the vocabulary tells, which is cased where any piece
    but the bracketed specials holds a capital letter.

    Raises:
        InputError: one of the files is damaged.
        UsageError: one of them asks for another tokenisation than BERT's.
    """
    answers = []
    if (folder / TOKENIZER_CONFIG).is_file():
        settings = read_json_object(folder / TOKENIZER_CONFIG)
        answers.append((TOKENIZER_CONFIG, settings.get("do_lower_case"), settings))
    if (folder / TOKENIZER).is_file():
        normalizer = read_json_object(folder / TOKENIZER).get("normalizer") or {}
        answers.append((TOKENIZER, normalizer.get("lowercase"), normalizer))
    said = [says for _, says, _ in answers if isinstance(says, bool)]
    cased = any(piece != piece.lower() for piece in vocab if not piece.startswith("["))
    lowercase = said[0] if said else not cased
    for name, _, settings in answers:
        _refuse_other_tokenisation(folder / name, settings, lowercase=lowercase)
    return lowercase


def _refuse_other_tokenisation(path: Path, settings: dict[str, Any], *, lowercase: bool) -> None:
    """Refuses options of HuggingFace's tokenizers that give other pieces than BERT's rules."""
    for option, expected in (
        ("strip_accents", (None, lowercase)),
        ("tokenize_chinese_chars", (None, True)),
        ("handle_chinese_chars", (None, True)),
        ("word_tokenizer_type", (None, "basic")),
        ("subword_tokenizer_type", (None, "wordpiece")),
    ):
        value = settings.get(option)
        if value not in expected:
            raise UsageError(
                f"{path}: {option} is {value!r}, which gives other pieces than BERT's rules; "
                "the model can be used only if you change that, and accept the difference"
            )


def write_vocabulary_files(
    folder: Path, vocab: list[str], *, lowercase: bool, max_length: int
) -> None:
    """Writes `vocab.txt` and `tokenizer_config.json`, which BERT tokenizers load."""
    write_text_atomically(folder / VOCAB, "\n".join([*vocab, ""]))
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lowercase,
        "model_max_length": max_length,
        **{f"{piece[1:-1].lower()}_token": piece for piece in SPECIAL_PIECES},
    }
    write_text_atomically(folder / TOKENIZER_CONFIG, json.dumps(settings, indent=2) + "\n")
