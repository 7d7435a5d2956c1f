"""Stores bulky intermediate data in files while references to it pass through Beam.

Beam's runners keep shuffled data in memory, but all workers see the output's folder. Each finished
unit of work has a file with its name, so a job that was killed does not do it again.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import google_crc32c

from bert_tf.base.errors import RunnerFailed
from bert_tf.base.files import RemotePath, naming_file
from bert_tf.base.json_files import read_if_sound, write_sealed
from pipeline.beam.progress import Progress, report_progress
from pipeline.beam.stored_path import path_of

# Environment variable with the seconds, for tests, and for storage that takes longer.
VARIABLE = "BERT_PIPELINE_VISIBILITY_SECONDS"
_VISIBILITY_SECONDS = 90.0  # until a file that another machine wrote must be seen
_FIRST_PAUSE = 0.05  # seconds between two looks, which double up to the longest
_LONGEST_PAUSE = 2.0

_BLOBS = ".blobs"
_FINISHED = ".finished.json"


class BlobReference(NamedTuple):
    """A range of a spill file.

    Attributes:
        name: of the file, in the store's folder.
        offset, length: in bytes.
        crc32c: of the content.
    """

    name: str
    offset: int
    length: int
    crc32c: int


# The receiver of a blob, such as a partition, and the blob.
LabeledBlob = tuple[int | str, BlobReference]
# A unit of work: stores blobs with a writer, one after the other, and returns them.
Work = Callable[["BlobWriter"], Iterable[LabeledBlob]]


@dataclasses.dataclass(frozen=True)
class BlobStore:
    """Blobs in files of an existing folder that all workers see; sent to the workers.

    Each attempt writes to a file of its own name, so simultaneous attempts, or a worker that
    outlives its run, cannot interfere.
    """

    folder: str

    @property
    def is_remote(self) -> bool:
        return isinstance(path_of(self.folder), RemotePath)

    def writer(self) -> BlobWriter:
        return BlobWriter(path_of(self.folder) / f"{uuid.uuid4().hex}{_BLOBS}")

    def once(self, name: str, work: Work) -> Iterator[LabeledBlob]:
        """Do a unit of work, unless this run or an interrupted one has finished it.

        Args:
            name: identifies the work: letters, digits, hyphens.
            work: stores blobs with the writer it is given.

        Yields:
            Its blobs, once all are done.
        """
        finished = self.finished(name)
        if finished is None:
            file = path_of(self.folder) / f"{name}.{uuid.uuid4().hex}{_BLOBS}"
            with BlobWriter(file) as writer:
                finished = list(work(writer))
                writer.sync()  # before a file marks it as whole
            done = {"file": file.name, "blobs": finished}
            write_sealed(path_of(self.folder) / f"{name}{_FINISHED}", done)
        yield from finished

    def finished(self, name: str) -> list[LabeledBlob] | None:
        """Return the blobs that `once` yielded for this name; None if unknown or damaged."""
        folder = path_of(self.folder)
        done = read_if_sound(folder / f"{name}{_FINISHED}")
        if done is None:
            return None
        blobs = [(label, BlobReference(*reference)) for label, reference in done["blobs"]]
        return blobs if _are_sound(folder / done["file"], blobs) else None

    def read(self, reference: BlobReference, start: int = 0, length: int | None = None) -> bytes:
        """Read a range of a blob; only a whole blob, the default, is verified by its checksum.

        Missing bytes are read again for a while: clients of network file systems cache missing
        names and sizes (NFS up to a minute, `acdirmax`).

        Args:
            reference: the blob.
            start: first byte of the range.
            length: bytes; None for all from `start` on.

        Raises:
            RunnerFailed: another worker's blob stays invisible.
        """
        is_whole = length is None and start == 0
        size = reference.length - start if length is None else length
        path = path_of(self.folder) / reference.name
        deadline = time.monotonic() + float(os.environ.get(VARIABLE, _VISIBILITY_SECONDS))
        pause = _FIRST_PAUSE
        while True:
            try:
                data = _read_range(path, reference.offset + start, size)
            except FileNotFoundError:
                seen = "no such file"
            else:
                seen = "other bytes"
                if len(data) < size:
                    seen = f"{len(data):,} of {size:,} bytes"
                elif not is_whole or google_crc32c.value(data) == reference.crc32c:
                    return data
            if time.monotonic() + pause > deadline:
                raise RunnerFailed(
                    f"{path}: {socket.gethostname()} does not see the file written there ({seen}); "
                    "the output must be on storage that all workers share, and nothing may be "
                    "removed from it while the job runs"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


class BlobWriter:
    """Writes blobs to one new file; a context manager."""

    def __init__(self, path: Path):
        self._path = path

    def __enter__(self) -> BlobWriter:
        self._stream = self._path.open("wb")
        self._offset = 0
        return self

    def __exit__(self, *failure: object) -> None:
        with naming_file(self._path):
            self._stream.close()
        report_progress(Progress.SPILLED_BYTES, self._offset)

    def sync(self) -> None:
        """Flush to disk; remote storage does so by itself."""
        if isinstance(self._path, RemotePath):
            return
        with naming_file(self._path):
            os.fsync(self._stream.fileno())

    def add(self, parts: Iterable[bytes | memoryview]) -> BlobReference:
        """Store one blob, given in parts.

        A local file can be read immediately, others once they are closed.
        """
        begin = self._offset
        crc32c = 0
        for part in parts:
            with naming_file(self._path):
                self._offset += self._stream.write(part)
            crc32c = google_crc32c.extend(crc32c, bytes(part))
        if not isinstance(self._path, RemotePath):  # which takes only large parts
            with naming_file(self._path):
                self._stream.flush()
        return BlobReference(self._path.name, begin, self._offset - begin, crc32c)


def remove_unfinished_work(folder: Path) -> None:
    """Remove the spill files of work that is not finished."""
    paths = list(folder.iterdir())
    finished = {path.name for path in paths}
    for path in paths:
        name = path.name
        if name.endswith(_BLOBS) and f"{name.partition('.')[0]}{_FINISHED}" not in finished:
            path.unlink()


def count_finished_work(folder: Path, kind: str) -> int:
    """Count the finished units of work of a kind, the first part of their names."""
    return sum(1 for _ in folder.glob(f"{kind}-*{_FINISHED}"))


def _are_sound(path: Path, blobs: list[LabeledBlob]) -> bool:
    """Return whether a file holds its blobs; of a remote file, only the size is compared."""
    try:
        if isinstance(path, RemotePath):
            size = path.stat().st_size
            return all(blob.offset + blob.length <= size for _, blob in blobs)
        for _, blob in blobs:
            data = _read_range(path, blob.offset, blob.length)
            if len(data) != blob.length or google_crc32c.value(data) != blob.crc32c:
                return False
    except FileNotFoundError:
        return False
    return True


def _read_range(path: Path, offset: int, length: int) -> bytes:
    if isinstance(path, RemotePath):
        return path.read_range(offset, length)
    with path.open("rb") as stream:
        stream.seek(offset)
        return stream.read(length)
