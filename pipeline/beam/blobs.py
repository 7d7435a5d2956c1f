"""Stores bulky intermediate data while references to it pass through Beam.

The local runner keeps what it shuffles in memory, so there data are spilled to files and only
references are shuffled; on a cluster, whose workers have no common disk, the data are shuffled.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol

import google_crc32c

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.base.sealed_json import read_if_sound, sealed
from bert_tf.base.storage_errors import naming_file
from pipeline.beam.progress import Progress, report_progress

_BLOBS, _FINISHED = ".blobs", ".finished.json"
_CHUNK_BYTES = 1 << 20


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


# Where a blob goes, and the blob.
LabeledBlob = tuple[int | str, BlobReference]
# What a unit of work stores with the writer it is given, one after the other.
Work = Callable[[BlobWriter], Iterable[LabeledBlob]]


class BlobStore(Protocol):
    """A store of blobs; sent to the workers."""

    def writer(self) -> BlobWriter:
        """A writer for the blobs of one bundle of work."""

    def once(self, name: str, work: Work) -> Iterator[LabeledBlob]:
        """Does a unit of work, unless an interrupted run has left it finished.

        Args:
            name: of letters, digits and hyphens; the same whenever the same work is done again.
            work: what is to be done.
        """

    def finished(self, name: str) -> list[LabeledBlob] | None:
        """What `once` yielded for this name, here or in an interrupted run; None if unknown."""

    def size(self, reference: BlobReference) -> int:
        """Bytes of a blob."""

    def read(self, reference: BlobReference, start: int = 0, length: int | None = None) -> bytes:
        """A stretch of a blob, all of it by default."""


class SpilledBlobs:
    """Blobs in files of one folder, which all workers see.

    A small file beside the blobs of finished work lists where they are. Each attempt
    writes to a file of its own name, so that a worker that outlives its run does no harm to the
    next.

    Args:
        folder: an existing folder that the caller removes in the end.
    """

    def __init__(self, folder: str):
        self._folder = folder

    def writer(self) -> BlobWriter:
        """Opens a file of its own, so that workers never wait for each other."""
        return _SpillWriter(Path(self._folder) / f"{uuid.uuid4().hex}{_BLOBS}")

    def once(self, name: str, work: Work) -> Iterator[LabeledBlob]:
        """What the folder holds of this work, else the work; nothing before it is finished."""
        finished = self.finished(name)
        if finished is None:
            file = Path(self._folder) / f"{name}.{uuid.uuid4().hex}{_BLOBS}"
            with _SpillWriter(file) as writer:
                finished = list(work(writer))
                writer.sync()  # before a file marks it as whole
            done = {"file": file.name, "crc32c": writer.crc32c, "blobs": finished}
            write_text_atomically(Path(self._folder) / f"{name}{_FINISHED}", sealed(done))
        yield from finished

    def finished(self, name: str) -> list[LabeledBlob] | None:
        """What the folder holds; None as well if the blobs are not what they were."""
        folder = Path(self._folder)
        done = read_if_sound(folder / f"{name}{_FINISHED}")
        if done is None:
            return None
        file = folder / done["file"]
        if not file.exists() or _crc32c(file) != done["crc32c"]:
            return None
        return [(label, FileReference(*reference)) for label, reference in done["blobs"]]

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


def _crc32c(path: Path) -> int:
    crc = 0
    with path.open("rb") as stream:
        while part := stream.read(_CHUNK_BYTES):
            crc = google_crc32c.extend(crc, part)
    return crc


def remove_unfinished_work(folder: Path) -> None:
    """Removes from a folder of `SpilledBlobs` all but finished work."""
    for path in folder.glob(f"*{_BLOBS}"):
        if not (folder / f"{path.name.partition('.')[0]}{_FINISHED}").exists():
            path.unlink()


def count_finished_work(folder: Path, kind: str) -> int:
    """How many finished units of work have names that begin with this word and a hyphen."""
    return sum(1 for _ in folder.glob(f"{kind}-*{_FINISHED}"))


class _SpillWriter:
    """Writes blobs to a file; `crc32c` is that of all of them, enough for data soon removed."""

    def __init__(self, path: Path):
        self._path = path

    def __enter__(self) -> _SpillWriter:
        self._stream = self._path.open("wb")
        self._offset = 0
        self.crc32c = 0
        return self

    def __exit__(self, *failure: object) -> None:
        with naming_file(self._path):
            self._stream.close()
        report_progress(Progress.SPILLED_BYTES, self._offset)

    def sync(self) -> None:
        """Brings what was added to disk."""
        with naming_file(self._path):
            os.fsync(self._stream.fileno())

    def add(self, parts: Iterable[bytes | memoryview]) -> BlobReference:
        offset = self._offset
        for part in parts:
            with naming_file(self._path):
                self._offset += self._stream.write(part)
            self.crc32c = google_crc32c.extend(self.crc32c, bytes(part))
        with naming_file(self._path):
            self._stream.flush()
        return FileReference(self._path.name, offset, self._offset - offset)


class InlineBlobs:
    """Blobs that are their own references."""

    def writer(self) -> BlobWriter:
        """A writer that keeps nothing."""
        return _InlineWriter()

    def once(self, name: str, work: Work) -> Iterator[LabeledBlob]:
        """The work, a blob at a time; what an interrupted run did is lost."""
        del name
        with self.writer() as writer:
            yield from work(writer)

    def finished(self, name: str) -> None:
        """Nothing outlives a run."""
        del name

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
