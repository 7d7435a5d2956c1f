"""JSON files, read in bounded memory, and sealed ones that hold their own checksum."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from bert_tf.base.checksums import file_sha256
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import check_lfs_pointer, write_text_atomically

LARGEST_JSON_BYTES = 64 << 20  # the tokenizer of a vocabulary of 250,000 entries takes 9 MB


def read_json_object(path: str | Path) -> dict[str, Any]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise InputError(f"{path}: damaged; expected a JSON object")
    return document


def read_json(path: str | Path) -> Any:
    """Read a JSON file; UsageError if it cannot be read.

    Raises InputError if it is larger than LARGEST_JSON_BYTES, a Git LFS pointer, or not JSON.
    """
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(LARGEST_JSON_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    check_lfs_pointer(path, content)
    if len(content) > LARGEST_JSON_BYTES:
        raise InputError(
            f"{path}: is larger than {LARGEST_JSON_BYTES >> 20} MiB; expected JSON of settings"
        )
    try:
        return json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: damaged ({error}); expected JSON") from None
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply; expected JSON of settings") from None


_SEAL = "checksum"


def sealed(document: dict[str, Any], *, indent: int | None = None) -> str:
    """The document as JSON, with a last key `checksum`."""
    return (
        json.dumps({**document, _SEAL: _digest(document)}, indent=indent, ensure_ascii=False) + "\n"
    )


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a file of `sealed`, without its checksum, if any; raise ValueError for damage."""
    return unsealed(path.read_bytes())


def read_if_sound(path: Path) -> dict[str, Any] | None:
    """Read a file of `sealed`; None if missing or damaged."""
    try:
        return read_sealed(path)
    except (FileNotFoundError, ValueError):
        return None


def unsealed(content: bytes) -> dict[str, Any]:
    document = json.loads(content.decode("utf-8"))
    if not isinstance(document, dict):
        raise ValueError("expected a JSON object")
    seal = document.pop(_SEAL, None)
    if seal is not None and seal != _digest(document):
        raise ValueError("its content is not the one that its key `checksum` is of")
    return document


def note_finished(
    note: Path, path: Path, *, sha256: str | None = None, made_from: str = ""
) -> None:
    """Record the SHA-256 (computed if not given) of a finished file, and its origin."""
    document = {"sha256": sha256 or file_sha256(path), "made_from": made_from}
    write_text_atomically(note, sealed(document))


def finished_sha256(note: Path, path: Path, *, made_from: str = "") -> str | None:
    """SHA-256 of a finished file as recorded; None if the file, record or origin differs."""
    recorded = read_if_sound(note)
    if recorded is None or recorded.get("made_from") != made_from or not path.is_file():
        return None
    sha256 = file_sha256(path)
    return sha256 if recorded.get("sha256") == sha256 else None


def _digest(document: dict[str, Any]) -> str:
    content = json.loads(json.dumps(document))
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()
