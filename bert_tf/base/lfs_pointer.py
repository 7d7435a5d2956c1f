"""Git LFS pointers: a few lines of text that a clone without `git lfs` has in place of a file.

The format: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
"""

from __future__ import annotations

from pathlib import Path

from bert_tf.base.errors import InputError
from bert_tf.base.remote_path import as_path

POINTER_START = b"version https://git-lfs.github.com/spec/v1"


def check_lfs_pointer(path: str | Path, head: bytes | None = None) -> None:
    """Checks that a file is not a Git LFS pointer.

    Args:
        path: the file; one that cannot be read is left to its reader.
        head: its first bytes, if they are known already, as many as POINTER_START has.

    Raises:
        InputError: it is a pointer.
    """
    if head is None:
        try:
            with as_path(path).open("rb") as stream:
                head = stream.read(len(POINTER_START))
        except OSError:
            return
    if head.startswith(POINTER_START):
        raise InputError(
            f"{path}: is a Git LFS pointer, not the file itself; run 'git lfs pull' in its "
            "repository, or download the file"
        )
