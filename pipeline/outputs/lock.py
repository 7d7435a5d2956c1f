"""One process at a time writes an output: an advisory lock that ends with its process."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.remote_path import RemotePath
from pipeline.beam.stored_path import path_of
from pipeline.outputs.manifest import LOCK
from pipeline.outputs.remote_lock import holding_remote

_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_LOCKS = (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL)
_MOST_BYTES = 4096


def lock_path(output: str, *, is_directory: bool) -> Path:
    """The file that is locked: in a folder, by whatever name that is called, or beside a file."""
    path = path_of(output)
    return path / LOCK if is_directory else path.with_name(f".{path.name}{LOCK}")


@contextmanager
def holding_output(
    output: str, *, is_directory: bool, command: str, console: Console
) -> Iterator[Callable[[], None]]:
    """Keeps other processes of this tool from writing an output while the block runs.

    The folder that the lock file needs is made; it is removed where the block leaves it empty. An
    output that cannot be written needs no lock: the block will fail on it, or only look at it.

    Args:
        output: the file or folder.
        is_directory: which of the two it is.
        command: the command's name, for the messages of others.
        console: warned where the file system has no locks.

    Yields:
        A check, for the moment before the output is declared finished, that no other process has
        taken it over, which only storage without locks allows.

    Raises:
        UsageError: another process writes it.
    """
    path = lock_path(output, is_directory=is_directory)
    if isinstance(path, RemotePath):
        with holding_remote(path, output, command) as check:
            yield check
        return
    made = _missing_folders(path.parent)
    descriptor = None
    try:
        descriptor = _lock(path, output, console)
        if descriptor is not None:
            _introduce(descriptor, command)
        yield _nothing_to_check
    finally:
        if descriptor is not None:
            # Before it is released: whoever has opened this file finds that it is gone.
            if _is_at(descriptor, path):
                with suppress(PermissionError):
                    path.unlink()
            os.close(descriptor)
        for folder in made:
            with suppress(OSError):  # it is not empty, or somebody else was faster
                folder.rmdir()


def _nothing_to_check() -> None:
    """The lock is held until it is released."""


def _missing_folders(folder: Path) -> list[Path]:
    """The folders on the way that are not there, the innermost first."""
    return [place for place in (folder, *folder.parents) if not place.exists()]


def _lock(path: Path, output: str, console: Console) -> int | None:
    """Opens and locks the file; None where there is nothing to lock."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = _open(path)
        except (FileNotFoundError, FileExistsError):
            if path.parent.exists() and not path.parent.is_dir():
                raise
            continue  # its folder went with another job that was refused
        if descriptor is None:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise UsageError(
                f"{output}: is being written by another process{holder}; wait for it or choose "
                "another --output"
            ) from None
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _NO_LOCKS:
                raise
            path.unlink(missing_ok=True)
            console.warn(
                f"{output}: its file system has no locks ({error.strerror}); start no second "
                "command that writes it"
            )
            return None
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # its last holder has removed it since it was opened


def _open(path: Path) -> int | None:
    """Opens the lock file; only to read if it is another user's; None where none can be made."""
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        try:
            return os.open(path, flags | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            if error.errno not in _NOT_WRITABLE and flags != os.O_RDONLY:
                raise
    return None


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _introduce(descriptor: int, command: str) -> None:
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": command,
        "since": time.strftime("%Y-%m-%d %H:%M"),
    }
    with suppress(OSError):  # opened only to read; the lock holds without
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _holder(descriptor: int) -> str:
    """Who holds the lock, as far as that is written there."""
    try:
        holder = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
        host = "" if holder["host"] == socket.gethostname() else f" on {holder['host']}"
        return (
            f" (pid {holder['pid']}{host}, bert-pipeline {holder['command']}, "
            f"since {holder['since']})"
        )
    except (ValueError, KeyError, TypeError):
        return ""
