"""Files and folders that appear whole or not at all: written aside, synced, then renamed."""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bert_tf.base.remote_path import RemotePath, as_path
from bert_tf.base.storage_errors import naming_file

_BESIDE = re.compile(r"\.(.+)\.\d+(?:-[0-9a-f]{8})?\.(partial|before)")
# What network and FUSE file systems answer that cannot sync a folder; their servers decide then.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


@contextmanager
def replacing_file(path: str | Path, *, lasting: bool = True) -> Iterator[Path]:
    """Yields a path beside `path` to write to; it takes the place of `path` if nothing is raised.

    The parent folders are made. On an exception the partial file is removed.

    Args:
        path: the file. On remote storage, the path that is yielded is remote as well.
        lasting: whether content and name are on disk when this returns, which takes some
            milliseconds. False for what is of no use once the machine has stopped.
    """
    target = as_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = _beside(target, "partial")
    # Other storage syncs by itself, and a folder that is itself written aside is synced as a whole.
    lasting = (
        lasting
        and not isinstance(target, RemotePath)
        and not any(_BESIDE.fullmatch(parent.name) for parent in target.parents)
    )
    try:
        with naming_file(target, aside):
            yield aside
            if lasting:
                _sync(aside)
            aside.replace(target)
            if lasting:
                _sync(target.parent)
    except BaseException:
        with suppress(OSError):  # a read-only file system refuses even what is not there
            aside.unlink()
        raise


@contextmanager
def replacing_directory(path: str | Path) -> Iterator[Path]:
    """Yields an empty folder beside `path`; it takes the place of `path` if nothing is raised.

    All of it is on disk before it has that place.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside, before = _beside(target, "partial"), _beside(target, "before")
    aside.mkdir()
    try:
        with naming_file(target, aside):
            yield aside
            sync_tree(aside)
            if target.exists():
                target.replace(before)
            aside.replace(target)
            _sync(target.parent)
    finally:
        if before.exists() and not target.exists():
            before.replace(target)
        shutil.rmtree(before, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def write_text_atomically(path: str | Path, text: str, *, lasting: bool = True) -> None:
    """Writes UTF-8 text so that readers see the old file or the whole new one.

    Args:
        path: the file.
        text: its content.
        lasting: as in `replacing_file`.
    """
    with replacing_file(path, lasting=lasting) as aside:
        aside.write_text(text, encoding="utf-8")


def sync_tree(folder: str | Path) -> None:
    """Syncs a folder and all its files to disk, after other libraries wrote them."""
    for place, _, names in os.walk(folder):
        for name in names:
            if not (file := Path(place, name)).is_symlink():
                _sync(file)
        _sync(Path(place))


def remove(path: str | Path) -> None:
    """Removes a file, a link (never what it leads to) or a folder with all in it, if it exists."""
    path = as_path(path)
    if isinstance(path, RemotePath):
        path.remove_tree()
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_leftovers(folder: str | Path, names: Collection[str] | None = None) -> None:
    """Removes what killed processes left beside the files and folders they were replacing.

    Where one was killed between the two renames of a folder, the old folder is put back. Only for
    what no other process writes to.

    Args:
        folder: where to look; not in the folders inside it.
        names: of the files and folders that were being replaced; None for any.
    """
    folder = as_path(folder)
    begins = [""] if names is None else map(glob.escape, names)
    for path in [path for begin in begins for path in folder.glob(f".{begin}*")]:
        match = _BESIDE.fullmatch(path.name)
        if match is None or (names is not None and match[1] not in names):
            continue
        if match[2] == "partial":
            remove(path)
        elif path.is_dir():
            target = path.with_name(match[1])
            if target.exists():
                shutil.rmtree(path)
            else:
                path.rename(target)


def _beside(target: Path, kind: str) -> Path:
    """A name that no other process uses: in containers many have the same number."""
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.{kind}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not path.is_dir() or error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)
