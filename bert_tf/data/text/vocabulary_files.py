"""Vocabulary and casing of a HuggingFace folder."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.base.json_files import read_json_object
from bert_tf.data.text.casing import KEEP_ACCENTS, Lowercase, lowercase_of, vocabulary_casing
from bert_tf.data.text.tokenizer_json import TokenizerFile, read_tokenizer_file, unsupported
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIAL_TOKENS, read_vocab

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

# Rows of embeddings that padding adds at most; a larger difference is that of another model.
_MOST_UNUSED = 1024
_UNUSED = re.compile(r"\[unused\d+\]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FolderVocabulary:
    vocab: list[str]  # entries by id
    lowercase: Lowercase  # whether texts are lower-cased before tokenization
    notes: tuple[str, ...] = ()  # what was decided or does not carry over, a sentence each


def read_folder_vocabulary(folder: Path, *, vocab_size: int | None = None) -> FolderVocabulary:
    """Read vocabulary, added tokens and casing.

    Entries are those of `vocab.txt` or, where transformers 5 wrote none, `tokenizer.json`, then the
    added tokens, then `[unused…]` for each further row of the embeddings (`vocab_size`). Raises
    UsageError for no vocabulary, files that disagree or ask for another tokenization than BERT's,
    or embeddings of another vocabulary, InputError for a damaged file.
    """
    fast = read_tokenizer_file(folder / TOKENIZER) if (folder / TOKENIZER).is_file() else None
    path = folder / TOKENIZER_CONFIG
    settings = read_json_object(path) if path.is_file() else {}
    vocab = _read_entries(folder, fast)
    lowercase, notes = _read_lowercase(folder, vocab, settings, fast)
    _check_tokenization(path, settings, lowercase=lowercase)
    added = _added_tokens(folder, settings, fast)
    beyond = [] if vocab_size is None else [each for each in added if added[each] >= vocab_size]
    if beyond:
        left_out = f"leaves out the added {_listed(beyond)}, for which the embeddings have no row"
        notes += (f"{folder}: {left_out}",)
        added = {token: number for token, number in added.items() if token not in beyond}
    vocab = _with_added(folder, vocab, added)
    notes += _added_notes(folder, added, lowercase=lowercase)
    if vocab_size is not None and vocab_size != len(vocab):
        notes += (_check_size(folder, len(vocab), vocab_size),)
        vocab = [*vocab, *itertools.islice(_unused_names(vocab), vocab_size - len(vocab))]
    return FolderVocabulary(vocab=vocab, lowercase=lowercase, notes=notes)


def _read_entries(folder: Path, fast: TokenizerFile | None) -> list[str]:
    if not (folder / VOCAB).is_file():
        if fast is None:
            raise UsageError(f"{folder}: no vocabulary; looked for {VOCAB} and {TOKENIZER}")
        return fast.vocab
    vocab = read_vocab(folder / VOCAB)
    if fast is not None and any(
        entry != theirs and fast.added.get(str(entry)) != number
        for number, (entry, theirs) in enumerate(itertools.zip_longest(vocab, fast.vocab))
    ):
        raise UsageError(
            f"{folder}: {VOCAB} and {TOKENIZER} have different entries; remove the one that is "
            "not the model's"
        )
    return vocab


def _read_lowercase(
    folder: Path, vocab: list[str], settings: dict[str, Any], fast: TokenizerFile | None
) -> tuple[Lowercase, tuple[str, ...]]:
    found: dict[str, Lowercase] = {}
    if isinstance(settings.get("do_lower_case"), bool):
        keeps_accents = settings["do_lower_case"] and settings.get("strip_accents") is False
        found[TOKENIZER_CONFIG] = lowercase_of(settings["do_lower_case"], keeps_accents)
    if fast is not None:
        found[TOKENIZER] = fast.lowercase
    if len(set(found.values())) > 1:
        raise UsageError(
            f"{folder}: {TOKENIZER_CONFIG} has do_lower_case {found[TOKENIZER_CONFIG]}, "
            f"{TOKENIZER} lowercase {found[TOKENIZER]}; make them agree"
        )
    casing = vocabulary_casing(vocab)
    if found:
        file, lowercase = next(iter(found.items()))
        note = (
            f"{folder}: texts are lower-cased, as {file} says, but {casing.reason}, which no such "
            "text has; correct it if the model was trained on texts with their capitals"
        )
        return lowercase, (note,) if lowercase and casing.is_cased else ()
    decision = "keep their capitals" if casing.is_cased else "are lower-cased"
    other = json.dumps(casing.is_cased)
    note = (
        f"{folder}: texts {decision}, since {casing.reason}; if that is wrong, write "
        f'{{"do_lower_case": {other}}} to a {TOKENIZER_CONFIG} there'
    )
    return not casing.is_cased, (note,)


def _added_tokens(
    folder: Path, settings: dict[str, Any], fast: TokenizerFile | None
) -> dict[str, int]:
    found: list[tuple[Any, Any]] = [] if fast is None else list(fast.added.items())
    path = folder / ADDED_TOKENS
    if path.is_file():
        found += read_json_object(path).items()
    decoder = settings.get("added_tokens_decoder")
    for number, token in decoder.items() if isinstance(decoder, dict) else ():
        content = token.get("content") if isinstance(token, dict) else token
        found.append((content, int(number) if number.isdecimal() else None))
    added: dict[str, int] = {}
    for token, number in found:
        if type(number) is not int or number < 0 or not token or not isinstance(token, str):
            raise InputError(f"{folder}: damaged added token {token!r} with the id {number!r}")
        if added.setdefault(token, number) != number:
            raise UsageError(
                f"{folder}: the added token {token!r} has the ids {added[token]} and {number} in "
                "different files; remove the wrong one"
            )
    return {token: number for token, number in added.items() if token not in SPECIAL_TOKENS}


def _with_added(folder: Path, vocab: list[str], added: dict[str, int]) -> list[str]:
    entries = dict(enumerate(vocab))
    ids = {entry: number for number, entry in entries.items()}
    for token, number in added.items():
        if entries.setdefault(number, token) != token or ids.setdefault(token, number) != number:
            raise UsageError(
                f"{folder}: the added token {token!r} has the id {number}, which the vocabulary "
                f"has for {entries[number]!r}; one of them is of another model"
            )
    last = max(entries)
    if last > len(entries) + _MOST_UNUSED:
        raise UsageError(f"{folder}: an added token has the id {last}, beyond the vocabulary")
    names = _unused_names(ids)
    return [entries.get(number) or next(names) for number in range(last + 1)]


def _added_notes(folder: Path, added: Iterable[str], *, lowercase: Lowercase) -> tuple[str, ...]:
    split, words = list[str](), list[str]()
    for token in added:
        is_word = token.isascii() and token.isalnum() and not (lowercase and token != token.lower())
        (words if is_word else split).append(token)
    consequences = (
        (split, "which BERT's rules split in a text, and HuggingFace does not"),
        (words, "found here only as whole words, and by HuggingFace inside of longer ones, too"),
    )
    return tuple(
        f"{folder}: has the added {_listed(tokens)}, {consequence}"
        for tokens, consequence in consequences
        if tokens
    )


def _check_size(folder: Path, entries: int, rows: int) -> str:
    if not entries < rows <= entries + _MOST_UNUSED:
        cure = f"; if they are, append lines [unused…] to {VOCAB} until it has {rows:,}"
        raise UsageError(
            f"{folder}: the vocabulary has {entries:,} entries, but vocab_size in the config is "
            f"{rows:,}; they must be of the same model{cure if entries < rows else ''}"
        )
    return (
        f"{folder}: the vocabulary has {entries:,} entries, the embeddings {rows:,} rows; those "
        "beyond are kept as [unused…] and no text uses them"
    )


def without_unused_end(vocab: list[str]) -> list[str]:
    end = len(vocab)
    while _UNUSED.fullmatch(vocab[end - 1]):
        end -= 1
    return vocab[:end]


def _unused_names(taken: Iterable[str]) -> Iterator[str]:
    known = set(taken)
    names = (f"[unused{number}]" for number in itertools.count())
    return (name for name in names if name not in known)


def _listed(tokens: list[str]) -> str:
    named = ", ".join(map(repr, tokens[:3]))
    more = f" and {len(tokens) - 3} more" if len(tokens) > 3 else ""
    return f"{'token' if len(tokens) == 1 else 'tokens'} {named}{more}"


def _check_tokenization(path: Path, settings: dict[str, Any], *, lowercase: Lowercase) -> None:
    options: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("tokenizer_class", (None, *_TOKENIZER_CLASSES)),
        ("strip_accents", (None, lowercase is True)),
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
            raise unsupported(path, option, value)


def write_vocabulary_files(
    folder: Path, vocab: list[str], *, lowercase: Lowercase, max_length: int
) -> None:
    write_text_atomically(folder / VOCAB, "\n".join([*vocab, ""]))
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": bool(lowercase),
        **({"strip_accents": False} if lowercase == KEEP_ACCENTS else {}),
        "model_max_length": max_length,
        **{f"{piece[1:-1].lower()}_token": piece for piece in SPECIAL_TOKENS},
    }
    write_text_atomically(folder / TOKENIZER_CONFIG, json.dumps(settings, indent=2) + "\n")
