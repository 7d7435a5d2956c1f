"""Where bulky intermediate data lies while references to it pass through Beam.

The local runner keeps what it shuffles in memory, so there data are spilled to files and only
references are shuffled; on a cluster, whose workers share no disk, the data are shuffled.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol


class FileReference(NamedTuple):
    """A stretch of a spill file."""

    name: str
    offset: int
    length: int


BlobReference = FileReference | bytes


class BlobWriter(Protocol):
    """Takes blobs one after the other; a context manager."""

    def __enter__(self) -> BlobWriter: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def add(self, parts: Iterable[bytes | memoryview]) -> BlobReference:
        """Stores one blob, given in parts; it can be read at once."""


class BlobStore(Protocol):
    """Where blobs lie; travels to the workers."""

    def writer(self) -> BlobWriter:
        """A writer for the blobs of one bundle of work."""

    def size(self, reference: BlobReference) -> int:
        """Bytes of a blob."""

    def read(self, reference: BlobReference, start: int = 0, length: int | None = None) -> bytes:
        """A stretch of a blob, all of it by default."""


class SpilledBlobs:
    """Blobs in files of one folder, which all workers see.

    Args:
        folder: an existing folder that the caller removes in the end.
    """

    def __init__(self, folder: str):
        self._folder = folder

    def writer(self) -> BlobWriter:
        """Opens a file of its own, so that workers never wait for each other."""
        return _SpillWriter(Path(self._folder) / f"{uuid.uuid4().hex}.blobs")

    def size(self, reference: BlobReference) -> int:
        """Bytes of a blob."""
        assert isinstance(reference, tuple)
        return reference.length

    def read(self, reference: BlobReference, start: int = 0, length: int | None = None) -> bytes:
        """Reads a stretch of a blob from its file."""
        assert isinstance(reference, tuple)
        if length is None:
            length = reference.length - start
        with (Path(self._folder) / reference.name).open("rb") as stream:
            stream.seek(reference.offset + start)
            return stream.read(length)


class _SpillWriter:
    def __init__(self, path: Path):
        self._path = path

    def __enter__(self) -> _SpillWriter:
        self._stream = self._path.open("wb")
        self._offset = 0
        return self

    def __exit__(self, *failure: object) -> None:
        self._stream.close()

    def add(self, parts: Iterable[bytes | memoryview]) -> BlobReference:
        offset = self._offset
        for part in parts:
            self._offset += self._stream.write(part)
        self._stream.flush()
        return FileReference(self._path.name, offset, self._offset - offset)


class InlineBlobs:
    """Blobs that are their own references."""

    def writer(self) -> BlobWriter:
        """A writer that keeps nothing."""
        return _InlineWriter()

    def size(self, reference: BlobReference) -> int:
        """Bytes of a blob."""
        return len(reference)

    def read(self, reference: BlobReference, start: int = 0, length: int | None = None) -> bytes:
        """Cuts a stretch out of a blob."""
        assert isinstance(reference, bytes)
        return reference[start : None if length is None else start + length]


class _InlineWriter:
    def __enter__(self) -> _InlineWriter:
        return self

    def __exit__(self, *failure: object) -> None:
        pass

    def add(self, parts: Iterable[bytes | memoryview]) -> BlobReference:
        return b"".join(parts)


def store_for(runner: str, folder: str) -> BlobStore:
    """The store that a runner of `RunnerConfig` needs; the local one spills to a folder."""
    return SpilledBlobs(folder) if runner == "local" else InlineBlobs()
