"""JSON files, read in bounded memory, and sealed ones that contain their own checksum."""

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
    """Read a JSON file that contains an object.

    Raises:
        UsageError, InputError: see `read_json`; also if it contains something else.
    """
    document = read_json(path)
    if not isinstance(document, dict):
        raise InputError(f"{path}: damaged; expected a JSON object")
    return document


class JsonFolder:
    """The JSON objects in the files of a folder, each read once, when it is first asked for.

    `files[name]` is the content of a file, `name in files` whether it is there. Errors are those of
    `read_json_object`.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: Path):
        self.path = path
        self._documents: dict[str, dict[str, Any]] = {}

    def __contains__(self, name: str) -> bool:
        return (self.path / name).is_file()

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name not in self._documents:
            self._documents[name] = read_json_object(self.path / name)
        return self._documents[name]

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the content of a file; None if there is no such file."""
        if name not in self:
            return None
        return self[name]


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        UsageError: the file cannot be read.
        InputError: it is larger than LARGEST_JSON_BYTES, a Git LFS pointer, or not JSON.
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


_SEAL = "checksum"  # key of a sealed document


def sealed(document: dict[str, Any], *, indent: int | None = None) -> str:
    """Return a document as JSON, with its checksum as the last key."""
    content = {**document, _SEAL: _digest(document)}
    return json.dumps(content, indent=indent, ensure_ascii=False) + "\n"


def write_sealed(path: Path, document: dict[str, Any], *, indent: int | None = None) -> None:
    """Write a document of `sealed`, so that readers see the old file or the complete new one."""
    text = sealed(document, indent=indent)
    write_text_atomically(path, text)


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a file of `sealed`, without its checksum; a file without one is not checked.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged.
    """
    return unsealed(path.read_bytes())


def read_if_sound(path: Path) -> dict[str, Any] | None:
    """Read a file of `sealed`; return None if it is missing or damaged.

    For files that are written last and record which work is finished: other work is done again.
    """
    try:
        return read_sealed(path)
    except (FileNotFoundError, ValueError):
        return None


def unsealed(content: bytes) -> dict[str, Any]:
    """Return the document of `sealed`, given as UTF-8; see `read_sealed`."""
    document = json.loads(content.decode("utf-8"))
    if not isinstance(document, dict):
        raise ValueError("expected a JSON object")
    seal = document.pop(_SEAL, None)
    if seal is not None and seal != _digest(document):
        raise ValueError("its content does not match its key `checksum`")
    return document


def note_finished(
    note: Path, path: Path, *, sha256: str | None = None, made_from: str = ""
) -> None:
    """Record that a file is finished.

    Args:
        note: path of the record.
        path: the file.
        sha256: its SHA-256; None reads the file.
        made_from: checksum of the inputs of the file.
    """
    document = {"sha256": sha256 or file_sha256(path), "made_from": made_from}
    write_sealed(note, document)


def finished_sha256(note: Path, path: Path, *, made_from: str = "") -> str | None:
    """Return the SHA-256 of a finished file, as `note_finished` recorded it.

    None if there is no such record, if it or the file is damaged, or if the file was made from
    something else.
    """
    recorded = read_if_sound(note)
    if recorded is None or recorded.get("made_from") != made_from or not path.is_file():
        return None
    sha256 = file_sha256(path)
    return sha256 if recorded.get("sha256") == sha256 else None


def _digest(document: dict[str, Any]) -> str:
    """Return a checksum of the content, however it is formatted; keys become texts."""
    content = json.loads(json.dumps(document))
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()
