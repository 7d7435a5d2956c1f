"""Copies of files between this machine and other storage, several at a time."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bert_tf.base.checksums import file_sha256
from bert_tf.base.errors import InputError
from bert_tf.base.files import replacing_file

_AT_ONCE = 8  # a file alone does not use the whole network
_CHUNK_BYTES = 16 << 20


def copy_files(files: Mapping[Path, Path], sha256: Mapping[Path, str] | None = None) -> None:
    """Copies files; each appears whole or not at all.

    Args:
        files: source by target; a source may grow meanwhile.
        sha256: what a target is to be, where that is known.

    Raises:
        OSError: one cannot be read or written; others may be there then.
        InputError: one is not what it is to be.
    """
    for folder in {target.parent for target in files}:  # not by several threads at once
        folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        copies = [
            pool.submit(_copy, source, target, (sha256 or {}).get(target))
            for target, source in files.items()
        ]
        try:
            for copy in copies:
                copy.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _copy(source: Path, target: Path, sha256: str | None) -> None:
    with replacing_file(target, lasting=False) as aside:
        with source.open("rb") as read, aside.open("wb") as written:
            shutil.copyfileobj(read, written, _CHUNK_BYTES)
        if sha256 is not None and file_sha256(aside) != sha256:
            raise InputError(
                f"{source}: is not what was written (its SHA-256 differs from the manifest's), so "
                "it is damaged or edited; make it again"
            )
