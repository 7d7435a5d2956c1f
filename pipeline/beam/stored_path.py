"""Paths on the storage that Beam writes: gs://, s3://, hdfs://, azfs://, with `Path`'s methods."""

from __future__ import annotations

import errno
import fnmatch
import io
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bert_tf.base.checksums import file_sha256
from bert_tf.base.errors import BertPipelineError, InputError
from bert_tf.base.files import RemotePath, replacing_file

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata, FileSystem

_READ_BYTES = 1 << 20  # buffered
# S3 takes 10,000 parts of a file, and Beam makes a part of each write of 5 MB or more.
_PART_BYTES = 16 << 20
_DELETED_AT_ONCE = 1000
_NO_WILDCARD = re.compile(r"[^*?\[]*")
_AS_IT_IS = "uncompressed"  # CompressionTypes.UNCOMPRESSED
# Folders that this process has made or written into: object stores have no folders, and their
# listings may be late.
_MADE: set[str] = set()
_AT_ONCE = 8  # files that are copied at a time, since one does not use the whole network
_CHUNK_BYTES = 16 << 20  # copied at a time


def path_of(location: str | Path) -> Path:
    """Return a local path, or a `StoredPath` for a URL; only the latter imports Beam."""
    if isinstance(location, Path):
        return location
    return StoredPath(location) if "://" in location else Path(location)


class StoredPath(RemotePath):
    """A file or folder of one of Beam's file systems; methods are those of `Path`.

    As on object stores, a folder exists while it holds something, or if this process has made it.
    Failures are OSErrors about the path, and FileNotFoundErrors for missing files.
    """

    _listed: FileMetadata | None = None

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open the file to read (`r`, `rb`) or write anew (`w`, `wb`, complete once closed)."""
        kind = mode.replace("b", "")
        if kind not in ("r", "w"):
            raise ValueError(f"{mode}: {self} can only be read, or written from the start")
        binary: IO[bytes]
        if kind == "r":
            with _errors_about(self, must_exist=True):
                stream = _beam().open(str(self), compression_type=_AS_IT_IS)
            binary = io.BufferedReader(_Stream(stream, self, writes=False), _READ_BYTES)
        else:
            with _errors_about(self):
                if self._has_folders() and self._is_object():
                    _beam().delete([str(self)])
                stream = _beam().create(str(self), compression_type=_AS_IT_IS)
            _MADE.add(str(self.parent))
            binary = io.BufferedWriter(_Stream(stream, self, writes=True), _PART_BYTES)
        return binary if "b" in mode else io.TextIOWrapper(binary, encoding, errors, newline)

    def read_range(self, offset: int, length: int) -> bytes:
        with _errors_about(self, must_exist=True):
            stream = _beam().open(str(self), compression_type=_AS_IT_IS)
            try:
                # Beam's buffer would fetch 16 MB for every read.
                unbuffered = getattr(stream, "raw", stream)
                unbuffered.seek(offset)
                parts: list[bytes] = []
                missing = length
                while missing > 0:
                    part = unbuffered.read(missing)
                    if not part:
                        break
                    parts.append(part)
                    missing -= len(part)
                return b"".join(parts)
            finally:
                stream.close()

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return size and time of change; the rest is 0."""
        metadata = self._listed
        if metadata is None:
            with _errors_about(self, must_exist=True):
                metadata = self._system().metadata(str(self))
        seconds = int(metadata.last_updated_in_seconds or 0)
        return os.stat_result((stat.S_IFREG, 0, 0, 0, 0, 0, metadata.size_in_bytes, 0, seconds, 0))

    def exists(self) -> bool:
        return self._is_object() or self.is_dir()

    def is_file(self) -> bool:
        if self._listed is not None:
            return True
        return self._is_object() and not (self._has_folders() and self.is_dir())

    def is_dir(self) -> bool:
        if str(self) in _MADE:
            return True
        if self._has_folders():
            return self._is_object() and _is_folder(self._system(), str(self))
        return next(self._inside(), None) is not None

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if self._has_folders() and not self._is_object():
            with _errors_about(self):
                _beam().mkdirs(str(self))
        _MADE.add(str(self))

    def iterdir(self) -> Iterator[StoredPath]:  # type: ignore[override]
        yield from self._children("")

    def glob(self, pattern: str) -> Iterator[StoredPath]:  # type: ignore[override]
        begin = _NO_WILDCARD.match(pattern)[0]  # type: ignore[index]
        children = self._children(begin)
        yield from (path for path in children if fnmatch.fnmatchcase(path.name, pattern))

    def rglob(self, pattern: str) -> Iterator[StoredPath]:  # type: ignore[override]
        """Yield matching files at any depth, but no folders."""
        yield from (path for path in self._inside() if fnmatch.fnmatchcase(path.name, pattern))

    def replace(self, target: Path) -> Path:  # type: ignore[override]
        """Rename the file on the same storage; not atomic, and object stores copy and delete."""
        with _errors_about(self, must_exist=True):
            if self._has_folders() and self._system().exists(str(target)):
                _beam().delete([str(target)])
            _beam().rename([str(self)], [str(target)])
        return target

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok and not self._is_object():
            raise _no_such_file(self)
        try:
            with _errors_about(self, must_exist=True):
                _beam().delete([str(self)])
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_tree(self) -> None:
        _MADE.difference_update([name for name in _MADE if f"{name}/".startswith(f"{self}/")])
        if self._has_folders():
            self.unlink(missing_ok=True)
            return
        paths = [str(path) for path in self._inside()] or [str(self)]
        for begin in range(0, len(paths), _DELETED_AT_ONCE):
            with _errors_about(self, must_exist=True), suppress(FileNotFoundError):
                _beam().delete(paths[begin : begin + _DELETED_AT_ONCE])

    def _system(self) -> FileSystem:
        with _errors_about(self):
            return _beam().get_filesystem(str(self))

    def _has_folders(self) -> bool:
        return self._system().has_dirs()

    def _is_object(self) -> bool:
        if self._listed is not None:
            return True
        with _errors_about(self):
            return bool(_beam().exists(str(self)))

    def _children(self, begin: str) -> Iterator[StoredPath]:
        """Yield files and folders directly inside, each once.

        Args:
            begin: of their names, which object stores filter by; other storage ignores it.
        """
        if self._has_folders():
            with _errors_about(self):
                system = self._system()
                if not system.exists(str(self)):
                    return
                for item in system._list(str(self)):
                    # Items without a size may be folders.
                    yield StoredPath._of(item) if item.size_in_bytes else StoredPath(item.path)
            return
        depth = len(self.parts)
        seen = set()
        for path in self._inside(begin):
            name = path.parts[depth]
            if name not in seen:
                seen.add(name)
                yield path if len(path.parts) == depth + 1 else self / name

    def _inside(self, begin: str = "") -> Iterator[StoredPath]:
        """Yield all files inside.

        Args:
            begin: of their paths in the folder, which object stores filter by; other storage
                ignores it.
        """
        with _errors_about(self):
            system = self._system()
            if system.has_dirs():
                listed = _walk(system, str(self))
            else:
                listed = system._list(f"{self}/{begin}")
            yield from map(StoredPath._of, listed)

    @classmethod
    def _of(cls, item: FileMetadata) -> StoredPath:
        path = cls(item.path)
        path._listed = item
        return path


class _Stream(io.RawIOBase):
    """Wraps a stream of Beam as a raw stream of Python, whose errors name the file."""

    def __init__(self, stream: Any, path: StoredPath, *, writes: bool):
        self._stream = stream
        self._path = path
        self._writes = writes
        self._is_empty = True

    def readable(self) -> bool:
        return not self._writes

    seekable = readable

    def writable(self) -> bool:
        return self._writes

    def readinto(self, buffer: Any) -> int:
        with _errors_about(self._path):
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        with _errors_about(self._path):
            self._stream.write(data)
        self._is_empty = self._is_empty and not len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _errors_about(self._path):
            self._stream.seek(offset, whence)
            return int(self._stream.tell())

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        if self.closed:
            return
        try:
            with _errors_about(self._path):
                if self._writes and self._is_empty:
                    _begin_empty_file(self._stream)
                self._stream.close()
        finally:
            super().close()


def _begin_empty_file(stream: Any) -> None:
    """Write an empty part, without which S3 does not complete the upload of an empty file."""
    uploader = getattr(getattr(stream, "raw", None), "_uploader", None)
    write_part = getattr(uploader, "_write_to_s3", None)
    if write_part is not None:
        write_part(b"")


def _walk(system: FileSystem, folder: str) -> Iterator[FileMetadata]:
    """Yield files in a folder, at any depth; a listing does not mark folders."""
    if not system.exists(folder):
        return
    for item in system._list(folder):
        if item.size_in_bytes == 0 and _is_folder(system, item.path):
            yield from _walk(system, item.path)
        else:
            yield item


def _is_folder(system: FileSystem, path: str) -> bool:
    """Return whether a path is a folder; listing a file fails, or has only the file itself."""
    try:
        return all(item.path.rstrip("/") != path.rstrip("/") for item in system._list(path))
    except Exception:
        return False


@contextmanager
def _errors_about(path: StoredPath, *, must_exist: bool = False) -> Iterator[None]:
    """Turn errors of Beam and its clients into OSErrors, or FileNotFoundErrors, of a path."""
    try:
        yield
    except BertPipelineError:
        raise
    except Exception as error:
        from pipeline.beam.storage import check_scheme, innermost_message

        check_scheme(str(path))
        if must_exist and not _may_exist(str(path)):
            raise _no_such_file(path) from error
        raise OSError(errno.EIO, innermost_message(error), str(path)) from error


def _no_such_file(path: StoredPath) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _may_exist(path: str) -> bool:
    """Return whether the file is there, or storage cannot be asked."""
    try:
        return bool(_beam().exists(path))
    except Exception:
        return True


def _beam() -> Any:
    from apache_beam.io.filesystems import FileSystems

    from pipeline.beam.storage import keep_s3_clients

    keep_s3_clients()
    return FileSystems


def copy_files(files: Mapping[Path, Path], sha256: Mapping[Path, str] | None = None) -> None:
    """Copy files between any storage, each atomically; sources may grow meanwhile.

    Args:
        files: source by target.
        sha256: expected hash by target, where it is known.

    Raises:
        OSError: a file cannot be read or written.
        InputError: the SHA-256 of a file is another; other files may have been copied then.
    """
    for folder in {target.parent for target in files}:  # before threads could make it at once
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
                f"{source}: has changed since it was written (its SHA-256 differs from the "
                "manifest's); make it again"
            )
