"""`vocab.txt`: the pieces of a WordPiece vocabulary in the order of their ids."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.base.lfs_pointer import check_lfs_pointer

SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"


def read_vocab(path: str | Path) -> list[str]:
    """Reads a `vocab.txt`, one piece a line; a piece's id is its line counted from 0.

    Raises:
        UsageError: no such file, not UTF-8, an empty line, a piece given twice, a special missing.
    """
    path = Path(path)
    check_lfs_pointer(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path}: no such vocabulary; make one with bert-pipeline vocab") from None
    except IsADirectoryError:
        raise UsageError(
            f"{path}: is a folder; expected a vocabulary file, a piece a line"
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: byte {error.start} is not UTF-8; expected a vocabulary, a piece a line"
        ) from None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    vocab = [line.removesuffix("\r") for line in lines]
    first_line: dict[str, int] = {}
    for number, piece in enumerate(vocab, start=1):
        if not piece:
            raise UsageError(f"{path}:{number}: empty line; expected a piece on every line")
        if piece in first_line:
            raise UsageError(
                f"{path}:{number}: {piece!r} stands in line {first_line[piece]} already; "
                "every piece may appear once"
            )
        first_line[piece] = number
    missing = [piece for piece in SPECIAL_PIECES if piece not in first_line]
    if missing:
        raise UsageError(
            f"{path}: lacks {' '.join(missing)}; a BERT vocabulary holds {' '.join(SPECIAL_PIECES)}"
        )
    return vocab


def read_vocab_for_masking(path: str | Path) -> list[str]:
    """Reads a `vocab.txt` that masks are drawn with: some targets are replaced by random pieces.

    Raises:
        UsageError: as `read_vocab`; also where there is no piece but the specials.
    """
    vocab = read_vocab(path)
    if len(vocab) == len(SPECIAL_PIECES):
        raise UsageError(
            f"{path}: has no piece but {' '.join(SPECIAL_PIECES)}; make a vocabulary with "
            "bert-pipeline vocab"
        )
    return vocab


def vocab_fingerprint(vocab: list[str]) -> str:
    """SHA-256 (hex) of the pieces joined by newlines: equal for equal ids, whatever the file."""
    return hashlib.sha256("\n".join(vocab).encode("utf-8")).hexdigest()
