"""`vocab.txt`: the entries of a WordPiece vocabulary in the order of their ids."""

from __future__ import annotations

import hashlib
from collections.abc import Container
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.base.files import as_path, check_lfs_pointer

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"
# Numbers of special tokens in a row
SPECIALS_OF_TEXT = 2  # [CLS] and [SEP]
SPECIALS_OF_PAIR = 3  # [CLS] and two [SEP]


def read_vocab(path: str | Path) -> list[str]:
    """Read a `vocab.txt`, one entry per line; the id of an entry is its line, counted from 0.

    Raises:
        UsageError: there is no such file, it is not UTF-8, a line is empty, an entry is repeated,
            or a special token is missing.
    """
    path = as_path(path)
    check_lfs_pointer(path)
    expected = "expected a vocabulary file, one entry per line"
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{path}: no such vocabulary; make one with bert-pipeline vocab") from None
    except IsADirectoryError:
        raise UsageError(f"{path}: is a folder; {expected}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8; {expected}") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    vocab = [line.removesuffix("\r") for line in lines]
    first_line: dict[str, int] = {}
    for number, entry in enumerate(vocab, start=1):
        if not entry:
            raise UsageError(f"{path}:{number}: empty line; expected an entry on every line")
        if entry in first_line:
            raise UsageError(
                f"{path}:{number}: {entry!r} is in line {first_line[entry]} already; "
                "every entry may appear once"
            )
        first_line[entry] = number
    check_specials(path, first_line)
    return vocab


def check_specials(path: Path, entries: Container[str]) -> None:
    """Raise UsageError unless all five special tokens are among the entries."""
    missing = [entry for entry in SPECIAL_TOKENS if entry not in entries]
    if missing:
        raise UsageError(
            f"{path}: lacks {' '.join(missing)}; a BERT vocabulary holds {' '.join(SPECIAL_TOKENS)}"
        )


def read_vocab_for_masking(path: str | Path) -> list[str]:
    """Read a `vocab.txt` for masking, which replaces some targets by random tokens.

    Raises:
        UsageError: like `read_vocab`, and if there are only special tokens.
    """
    vocab = read_vocab(path)
    if len(vocab) == len(SPECIAL_TOKENS):
        raise UsageError(
            f"{path}: has no entry but {' '.join(SPECIAL_TOKENS)}; make a vocabulary with "
            "bert-pipeline vocab"
        )
    return vocab


def vocab_fingerprint(vocab: list[str]) -> str:
    """Return the SHA-256 (hex) of the entries joined by newlines.

    It is equal for equal ids, however the file ends its lines.
    """
    return hashlib.sha256("\n".join(vocab).encode("utf-8")).hexdigest()
