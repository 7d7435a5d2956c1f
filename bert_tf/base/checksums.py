"""`SHA256SUMS`: checksums in a folder that travel with it, in the format of `sha256sum --check`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bert_tf.base.errors import InputError
from bert_tf.base.files import as_path, write_text_atomically

SUMS = "SHA256SUMS"
CARD = "README.md"  # has no checksum, since people edit the card of a model to publish it
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with as_path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_sums(folder: Path, names: Iterable[str]) -> None:
    """Add files of a folder to its `SHA256SUMS`, or replace their checksums.

    Args:
        folder: the folder.
        names: paths relative to it.
    """
    sums = {**read_sums(folder), **{name: file_sha256(folder / name) for name in names}}
    text = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(sums.items()))
    write_text_atomically(folder / SUMS, text)


def write_text_and_sum(folder: Path, name: str, text: str) -> None:
    """Write a text file of a folder, and renew the checksums if the folder has any.

    While the file changes there is no `SHA256SUMS`: the folder is valid, but unverified.

    Args:
        folder: the folder.
        name: path of the file, relative to it.
        text: its content.

    Raises:
        InputError: the folder's `SHA256SUMS` is damaged.
    """
    listed = read_sums(folder)
    (folder / SUMS).unlink(missing_ok=True)
    write_text_atomically(folder / name, text)
    if listed:
        write_sums(folder, [*listed, name])


def read_sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 by relative path; {} without a `SHA256SUMS`.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / SUMS
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    sums = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(
                f"{path}:{number}: damaged; expected a SHA-256, two spaces and a name; make the "
                "folder again, or delete this file if the others are intact"
            )
        sums[match[2]] = match[1]
    return sums


def check_sums(
    folder: Path,
    is_read: Callable[[str], bool] = lambda name: True,
    *,
    known: Mapping[str, str] | None = None,
) -> None:
    """Compare files of a folder with its `SHA256SUMS`; a folder without one passes.

    Args:
        folder: the folder.
        is_read: selects the listed paths to compare.
        known: SHA-256 by relative path of files that were just hashed; others are read.

    Raises:
        InputError: a listed file is missing or has changed.
    """
    for name, sha256 in read_sums(folder).items():
        if not is_read(name):
            continue
        path = folder / name
        if not path.is_file():
            raise InputError(f"{path}: is missing, {_cure(folder)}")
        if ((known or {}).get(name) or file_sha256(path)) != sha256:
            raise InputError(
                f"{path}: has changed since it was written (its SHA-256 differs), {_cure(folder)}"
            )


def _cure(folder: Path) -> str:
    return (
        f"as {SUMS} shows; make the folder again, or delete {folder / SUMS} if the change is "
        "intended"
    )
