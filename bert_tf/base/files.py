"""Local and remote paths; files that appear whole or not at all: written aside, then renamed."""

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

_BESIDE = re.compile(r"\.(.+)\.\d+(?:-[0-9a-f]{8})?\.(partial|before)")
# What network and FUSE file systems answer that cannot sync a folder; their servers decide then.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


class RemotePath(PosixPath):
    """`scheme://bucket/folder/file`; subclasses read and write such files by a path's own methods.

    `os`, `open` and libraries that take file names get a TypeError, so that nothing is written to a
    folder `scheme:`.
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
        """Read bytes, fewer at the end; raise FileNotFoundError if there is no file."""
        raise NotImplementedError

    def remove_tree(self) -> None:
        raise NotImplementedError


def as_path(path: str | Path) -> Path:
    return path if isinstance(path, Path) else Path(path)


def toml_beside(module: str, name: str) -> dict[str, Any]:
    """Read the TOML file next to a module, which is named by its `__file__`."""
    return tomllib.loads(Path(module).with_name(name).read_text(encoding="utf-8"))


@contextmanager
def replacing_file(path: str | Path, *, lasting: bool = True) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it replaces `path` if nothing is raised.

    Parent folders are made. `lasting` syncs content and name to disk, some milliseconds.
    """
    target = as_path(path)
    make_folders(target.parent)
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
    """Yield an empty folder beside `path`; synced, it replaces `path` if nothing is raised."""
    target = Path(path)
    make_folders(target.parent)
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
    """Write UTF-8 text; readers see the old file or the whole new one; see `replacing_file`."""
    with replacing_file(path, lasting=lasting) as aside:
        aside.write_text(text, encoding="utf-8")


def make_folders(folder: Path) -> None:
    """Make a folder and its parents where they are missing; new names last, as in `_sync`."""
    if isinstance(folder, RemotePath):
        folder.mkdir(parents=True, exist_ok=True)
        return
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        _sync(each.parent)


def sync_tree(folder: str | Path) -> None:
    """Sync a folder and all its files to disk, after other libraries wrote them."""
    for place, _, names in os.walk(folder):
        for name in names:
            if not (file := Path(place, name)).is_symlink():
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
    """Remove files that killed processes left beside the files and folders they were replacing.

    An old folder is put back if the new one had not taken its place. Not recursive, and only for
    folders that no other process writes to; `names` are of the targets, None for any.
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
    """Make a name that no other process uses: in containers many have the same process ID."""
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


_STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@contextmanager
def naming_file(path: str | Path, aside: str | Path | None = None) -> Iterator[None]:
    """Raise failures of the block for lack of storage as an OSError about `path`.

    Python names the file on a full disk only when it opens it; safetensors, TensorFlow and HDF5
    raise errors of their own. Errors about `aside`, the file written meanwhile, name `path` too.
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
    except Exception as error:  # of any library; all but those about storage pass
        code = _code_in(str(error))
        if code is None:
            raise
        raise OSError(code, os.strerror(code), str(path)) from error


def check_free_space(folder: str | Path, size: int) -> None:
    """Raise OSError unless a folder has `size` free bytes; HDF5 and others would crash."""
    with naming_file(folder), tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _about(error: OSError, path: Path, aside: str | Path | None) -> OSError | None:
    if isinstance(error.filename, str) and error.errno is not None:
        if aside is None or not Path(error.filename).is_relative_to(aside):
            return None
        inside = Path(error.filename).relative_to(aside)
        return OSError(error.errno, error.strerror, str(path / inside))
    code = error.errno if error.errno in _STORAGE else _code_in(str(error))
    return None if code is None else OSError(code, os.strerror(code), str(path))


def _code_in(message: str) -> int | None:
    return next((code for code in _STORAGE if os.strerror(code) in message), None)


# In place of a file in a clone without `git lfs`
# (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
POINTER_START = b"version https://git-lfs.github.com/spec/v1"


def check_lfs_pointer(path: str | Path, head: bytes | None = None) -> None:
    """Raise InputError for a Git LFS pointer; pass files that cannot be read.

    `head` is the first bytes, if known, as many as POINTER_START has.
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


# TensorFlow's checkpoint readers take a path for a glob.
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
