"""Local and remote paths, and files that appear as a whole or not at all.

A file or folder is written beside its target, synced to disk, and renamed. Names of such files
contain the process ID and random digits, so that leftovers of killed processes can be recognized
and removed.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import shutil
import tempfile
import tomllib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PosixPath
from typing import Any, NoReturn, Self

from bert_tf.base.errors import BertPipelineError, InputError

# A file or folder that is being written ("partial"), or a folder that is being replaced ("before").
_BESIDE = re.compile(r"\.(.+)\.\d+(?:-[0-9a-f]{8})?\.(partial|before)")
# Errors of network and FUSE file systems that cannot sync a folder. Their servers decide then.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


class RemotePath(PosixPath):
    """`scheme://bucket/folder/file`; subclasses know how to read and write such files.

    Code that only uses methods of paths works on local and remote files. `os`, `open` and libraries
    that take file names get a TypeError, so that nothing is written to a folder `scheme:`.
    """

    def __str__(self) -> str:
        scheme, mark, rest = super().__str__().partition(":/")
        return f"{scheme}://{rest}" if mark else scheme

    def __fspath__(self) -> NoReturn:
        raise TypeError(f"{self}: is not on a file system of this machine")

    def absolute(self) -> Self:
        return self

    def resolve(self, strict: bool = False) -> Self:
        return self

    def is_symlink(self) -> bool:
        return False

    def read_range(self, offset: int, length: int) -> bytes:
        """Read bytes of the file, fewer at its end.

        Raises:
            FileNotFoundError: there is no such file.
        """
        raise NotImplementedError

    def remove_tree(self) -> None:
        """Remove the folder with all files in it, or the file, if it exists."""
        raise NotImplementedError


def as_path(path: str | Path) -> Path:
    """Return a `Path`; one that is a path already, on any storage, stays the same."""
    return path if isinstance(path, Path) else Path(path)


def toml_beside(module: str, name: str) -> dict[str, Any]:
    """Read the TOML file next to a module, which is named by its `__file__`."""
    return tomllib.loads(Path(module).with_name(name).read_text(encoding="utf-8"))


@contextmanager
def replacing_file(path: str | Path, *, lasting: bool = True) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it replaces `path` if nothing is raised.

    Parent folders are created. After an exception the partial file is removed.

    Args:
        path: the file. On remote storage, the yielded path is remote as well.
        lasting: whether to sync content and name to disk, which takes some milliseconds. False for
            files that are useless after the machine has stopped.
    """
    target = as_path(path)
    make_folders(target.parent)
    aside = _beside(target, "partial")
    # Remote storage syncs by itself. A folder that is itself written aside is synced as a whole.
    is_inside_aside = any(_BESIDE.fullmatch(parent.name) for parent in target.parents)
    lasting = lasting and not isinstance(target, RemotePath) and not is_inside_aside
    try:
        with naming_file(target, aside):
            yield aside
            if lasting:
                _sync(aside)
            aside.replace(target)
            if lasting:
                _sync(target.parent)
    except BaseException:
        with suppress(OSError):  # a read-only file system refuses to remove even a missing file
            aside.unlink()
        raise


@contextmanager
def replacing_directory(path: str | Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` to fill; it replaces `path` if nothing is raised.

    Everything is on disk before it replaces `path`.
    """
    target = Path(path)
    make_folders(target.parent)
    aside = _beside(target, "partial")
    before = _beside(target, "before")
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
    """Write UTF-8 text, so that readers see the old file or the complete new one.

    Args:
        path: the file.
        text: its content.
        lasting: see `replacing_file`.
    """
    with replacing_file(path, lasting=lasting) as aside:
        aside.write_text(text, encoding="utf-8")


def make_folders(folder: Path) -> None:
    """Create a folder and its parents where they are missing, and sync their names to disk."""
    if isinstance(folder, RemotePath):
        folder.mkdir(parents=True, exist_ok=True)
        return
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        _sync(place.parent)


def sync_tree(folder: str | Path) -> None:
    """Sync a folder and all its files to disk, after other libraries wrote them."""
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            if not file.is_symlink():
                _sync(file)
        _sync(Path(place))


def remove(path: str | Path) -> None:
    """Remove a file, a link (never its target) or a folder tree, if it exists."""
    path = as_path(path)
    if isinstance(path, RemotePath):
        path.remove_tree()
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_leftovers(folder: str | Path, names: Collection[str] | None = None) -> None:
    """Remove leftovers of killed processes beside the files and folders that they were replacing.

    If one was killed between the two renames of a folder, the old folder is put back. Only for
    folders that no other process writes to.

    Args:
        folder: the folder; folders inside it are not searched.
        names: names of the files and folders that were being replaced; None for any.
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
    """Return a name that no other process uses: in containers many have the same process ID."""
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


# Errors about storage: disk full, quota exceeded, read-only file system, file too large.
_STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@contextmanager
def naming_file(path: str | Path, aside: str | Path | None = None) -> Iterator[None]:
    """Raise failures of the block for lack of storage as an OSError about `path`.

    Python names the file on a full disk only when it opens it. safetensors, TensorFlow and HDF5
    raise errors of their own.

    Args:
        path: the file or folder that the block writes.
        aside: the path to which the block writes first; errors about it name `path`, too.

    Raises:
        OSError: there is no storage.
    """
    try:
        yield
    except BertPipelineError:
        raise
    except OSError as error:
        named = _about(error, as_path(path), aside)
        if named is None:
            raise
        raise named from error
    except Exception as error:  # a library's own kind, which may be about storage
        code = _code_in(str(error))
        if code is None:
            raise
        raise OSError(code, os.strerror(code), str(path)) from error


def check_free_space(folder: str | Path, size: int) -> None:
    """Check that a folder has free space, for libraries that crash on a full disk, like HDF5.

    Args:
        folder: an existing folder.
        size: bytes.

    Raises:
        OSError: there is not enough space.
    """
    with naming_file(folder), tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _about(error: OSError, path: Path, aside: str | Path | None) -> OSError | None:
    """Return an error that names `path`; None if it names another file, or is not about storage."""
    if isinstance(error.filename, str) and error.errno is not None:
        if aside is None or not Path(error.filename).is_relative_to(aside):
            return None
        inside = Path(error.filename).relative_to(aside)
        return OSError(error.errno, error.strerror, str(path / inside))
    code = error.errno if error.errno in _STORAGE else _code_in(str(error))
    return None if code is None else OSError(code, os.strerror(code), str(path))


def _code_in(message: str) -> int | None:
    """Return the error code of storage whose text is in a message; None without one."""
    return next((code for code in _STORAGE if os.strerror(code) in message), None)


# Beginning of the file that a clone without `git lfs` has instead of a large file
# (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
POINTER_START = b"version https://git-lfs.github.com/spec/v1"


def check_lfs_pointer(path: str | Path, head: bytes | None = None) -> None:
    """Check that a file is not a Git LFS pointer.

    Args:
        path: the file; one that cannot be read passes, since its reader will report it.
        head: its first bytes, as many as POINTER_START has; None reads them.

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


# TensorFlow's checkpoint readers interpret a path as a glob.
_MARKS = re.compile(r"[*?\[\\]")


@contextmanager
def plain_path(folder: str | Path) -> Iterator[Path]:
    """Yield a path to a folder without glob characters: its own, or a temporary link."""
    if not _MARKS.search(str(folder)):
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory() as place:
        link = Path(place) / "folder"
        link.symlink_to(Path(folder).resolve(), target_is_directory=True)
        yield link
