"""Vocabulary and casing of a folder in HuggingFace's format."""

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
from bert_tf.base.json_files import JsonFolder
from bert_tf.data.text.casing import KEEP_ACCENTS, Lowercase, lowercase_of, vocabulary_casing
from bert_tf.data.text.tokenizer_json import (
    TOKENIZER,
    TOKENIZER_CONFIG,
    TokenizerFile,
    check_settings,
    read_tokenizer_file,
    special_token_key,
)
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS, read_vocab

VOCAB = "vocab.txt"
ADDED_TOKENS = "added_tokens.json"
_CUT_LEFT = (
    "texts that are too long lose their end here, and their beginning in the model's own library "
    "(truncation_side is left); shorten them before if that matters"
)
# Most rows that padding adds to embeddings. A larger difference means another model.
_MOST_UNUSED = 1024
_NAMED_TOKENS = 3  # of a list in a note
_MOST_DIGITS = 18  # of an id written as text
_UNUSED = re.compile(r"\[unused\d+\]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FolderVocabulary:
    """Vocabulary of a folder.

    Attributes:
        vocab: entries in the order of their ids.
        lowercase: whether texts are lower-cased before tokenization, and how.
        notes: guesses that were made, and settings that do not carry over, a sentence each.
    """

    vocab: list[str]
    lowercase: Lowercase
    notes: tuple[str, ...] = ()


def read_folder_vocabulary(folder: Path, *, vocab_size: int | None = None) -> FolderVocabulary:
    """Read vocabulary, added tokens and casing; see `folder_vocabulary`."""
    return folder_vocabulary(JsonFolder(folder), vocab_size=vocab_size)


def folder_vocabulary(files: JsonFolder, *, vocab_size: int | None = None) -> FolderVocabulary:
    """Read vocabulary, added tokens and casing.

    The entries come from `vocab.txt`, or from `tokenizer.json` if there is none, as transformers 5
    writes folders. The added tokens follow, and `[unused…]` for each further row of the embeddings.

    Args:
        files: files of the model's folder.
        vocab_size: rows of the embeddings; None if there are none to agree with.

    Raises:
        UsageError: there is no vocabulary, files disagree, they describe another tokenization than
            that of BERT, or the embeddings belong to another vocabulary.
        InputError: a file is damaged.
    """
    folder = files.path
    fast = read_tokenizer_file(files)
    settings = files.get(TOKENIZER_CONFIG) or {}
    vocab = _read_entries(folder, fast)
    lowercase, notes = _read_lowercase(folder, vocab, settings, fast)
    check_settings(files, lowercase=lowercase)
    if settings.get("truncation_side") == "left" or (fast is not None and fast.cuts_left):
        notes += (f"{folder}: {_CUT_LEFT}",)
    added = _added_tokens(files, fast)
    if vocab_size is not None:
        beyond = [token for token, number in added.items() if number >= vocab_size]
        if beyond:
            left_out = f"leaves out the added {_listed(beyond)}"
            notes += (f"{folder}: {left_out}, for which the embeddings have no row",)
            added = {token: number for token, number in added.items() if number < vocab_size}
    vocab = _with_added(folder, vocab, added)
    notes += _added_notes(folder, added, lowercase=lowercase)
    if vocab_size is not None and vocab_size != len(vocab):
        notes += (_check_size(folder, len(vocab), vocab_size),)
        vocab = [*vocab, *itertools.islice(_unused_names(vocab), vocab_size - len(vocab))]
    return FolderVocabulary(vocab=vocab, lowercase=lowercase, notes=notes)


def _read_entries(folder: Path, fast: TokenizerFile | None) -> list[str]:
    """Return the entries of `vocab.txt` or `tokenizer.json`, which must agree."""
    if not (folder / VOCAB).is_file():
        if fast is None:
            raise UsageError(f"{folder}: no vocabulary; looked for {VOCAB} and {TOKENIZER}")
        return fast.vocab
    vocab = read_vocab(folder / VOCAB)
    if fast is None:
        return vocab
    for number, (entry, theirs) in enumerate(itertools.zip_longest(vocab, fast.vocab)):
        # `vocab.txt` may also have the added tokens, at their ids.
        if entry != theirs and fast.added.get(str(entry)) != number:
            raise UsageError(
                f"{folder}: {VOCAB} and {TOKENIZER} have different entries; remove the one that is "
                "not the model's"
            )
    return vocab


def _read_lowercase(
    folder: Path, vocab: list[str], settings: dict[str, Any], fast: TokenizerFile | None
) -> tuple[Lowercase, tuple[str, ...]]:
    """Return the casing, and a note if it was guessed or contradicts the entries.

    Settings in files decide; without any, the entries of the vocabulary do.
    """
    lowercases: dict[str, Lowercase] = {}
    if isinstance(settings.get("do_lower_case"), bool):
        keeps_accents = settings["do_lower_case"] and settings.get("strip_accents") is False
        lowercases[TOKENIZER_CONFIG] = lowercase_of(settings["do_lower_case"], keeps_accents)
    if fast is not None:
        lowercases[TOKENIZER] = fast.lowercase
    if len(set(lowercases.values())) > 1:
        raise UsageError(
            f"{folder}: {TOKENIZER_CONFIG} has do_lower_case {lowercases[TOKENIZER_CONFIG]}, "
            f"{TOKENIZER} lowercase {lowercases[TOKENIZER]}; make them agree"
        )
    casing = vocabulary_casing(vocab)
    if lowercases:
        file, lowercase = next(iter(lowercases.items()))
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


def _added_tokens(files: JsonFolder, fast: TokenizerFile | None) -> dict[str, int]:
    """Return the ids of tokens that any of the files adds, without special tokens."""
    folder = files.path
    tokens: list[tuple[Any, Any]] = [] if fast is None else list(fast.added.items())
    tokens += (files.get(ADDED_TOKENS) or {}).items()
    decoder = (files.get(TOKENIZER_CONFIG) or {}).get("added_tokens_decoder")
    if not isinstance(decoder, dict):
        decoder = {}
    for number, token in decoder.items():
        content = token.get("content") if isinstance(token, dict) else token
        is_id = number.isdecimal() and len(number) <= _MOST_DIGITS
        tokens.append((content, int(number) if is_id else None))
    added: dict[str, int] = {}
    for token, number in tokens:
        if type(number) is not int or number < 0 or not token or not isinstance(token, str):
            raise InputError(f"{folder}: damaged added token {token!r} with the id {number!r}")
        if added.setdefault(token, number) != number:
            raise UsageError(
                f"{folder}: the added token {token!r} has the ids {added[token]} and {number} in "
                "different files; remove the wrong one"
            )
    return {token: number for token, number in added.items() if token not in SPECIAL_TOKENS}


def _with_added(folder: Path, vocab: list[str], added: dict[str, int]) -> list[str]:
    """Return the entries with the added tokens at their ids, and `[unused…]` in gaps."""
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
    """Return notes on added tokens, which are found in texts otherwise than by HuggingFace."""
    split: list[str] = []
    words: list[str] = []
    for token in added:
        changes = lowercase and token != token.lower()
        if token.isascii() and token.isalnum() and not changes:
            words.append(token)
        else:
            split.append(token)
    notes: list[str] = []
    if split:
        consequence = "which BERT's rules split in a text, and HuggingFace does not"
        notes.append(f"{folder}: has the added {_listed(split)}, {consequence}")
    if words:
        consequence = "found here only as whole words, and by HuggingFace inside longer ones, too"
        notes.append(f"{folder}: has the added {_listed(words)}, {consequence}")
    return tuple(notes)


def _check_size(folder: Path, entries: int, rows: int) -> str:
    """Return a note if the embeddings have a few more rows than the vocabulary.

    Raises:
        UsageError: they have fewer rows, or many more.
    """
    if not entries < rows <= entries + _MOST_UNUSED:
        cure = ""
        if entries < rows:
            cure = f"; if they are, append lines [unused…] to {VOCAB} until it has {rows:,}"
        raise UsageError(
            f"{folder}: the vocabulary has {entries:,} entries, but vocab_size in the config is "
            f"{rows:,}; they must be of the same model{cure}"
        )
    return (
        f"{folder}: the vocabulary has {entries:,} entries, the embeddings {rows:,} rows; those "
        "beyond are kept as [unused…] and no text uses them"
    )


def without_unused_end(vocab: list[str]) -> list[str]:
    """Return the vocabulary without `[unused…]` entries at its end."""
    end = len(vocab)
    while _UNUSED.fullmatch(vocab[end - 1]):
        end -= 1
    return vocab[:end]


def _unused_names(taken: Iterable[str]) -> Iterator[str]:
    """Yield `[unused0]`, `[unused1]`, … without those that are taken."""
    known = set(taken)
    names = (f"[unused{number}]" for number in itertools.count())
    return (name for name in names if name not in known)


def _listed(tokens: list[str]) -> str:
    """Name up to three tokens, and the number of the others."""
    noun = "token" if len(tokens) == 1 else "tokens"
    text = f"{noun} {', '.join(map(repr, tokens[:_NAMED_TOKENS]))}"
    if len(tokens) > _NAMED_TOKENS:
        text += f" and {len(tokens) - _NAMED_TOKENS} more"
    return text


def write_vocabulary_files(
    folder: Path, vocab: list[str], *, lowercase: Lowercase, max_length: int
) -> None:
    """Write `vocab.txt` and `tokenizer_config.json`, which HuggingFace's tokenizers load.

    Args:
        folder: path of the folder; created if missing.
        vocab: entries in the order of their ids.
        lowercase: whether texts are lower-cased before tokenization, and how.
        max_length: most tokens of a row, special tokens included.
    """
    write_text_atomically(folder / VOCAB, "\n".join([*vocab, ""]))
    settings: dict[str, Any] = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": bool(lowercase),
    }
    if lowercase == KEEP_ACCENTS:
        settings["strip_accents"] = False
    settings["model_max_length"] = max_length
    settings |= {special_token_key(piece): piece for piece in SPECIAL_TOKENS}
    write_text_atomically(folder / TOKENIZER_CONFIG, json.dumps(settings, indent=2) + "\n")
