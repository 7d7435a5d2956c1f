"""Runs, the sorted records that one pool gives to one shard, and their merging into shards.

This is an external merge sort. Each pool sorts its records of a shard by rank; the shard is the
merge of its runs, some 16 MB at a time, so that the records of a shard need not fit into memory.
A run is stored as one blob: framed records, sizes (uint32), ranks (uint64), shards (uint32, only in
runs of a group), and the number of records (uint64), which is read first.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import google_crc32c
import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.errors import RunnerFailed
from bert_tf.base.files import replacing_file
from bert_tf.base.kernels import take_ranges
from pipeline.beam.blobs import BlobReference, BlobStore

_CHUNK_BYTES = 16_000_000  # of records that are merged at a time
_SMALL_RUN_BYTES = 4_000_000  # read at once from remote storage, where every range costs a request
# Bytes of a record's entries in the parts of a run.
_SIZE_BYTES = 4
_RANK_BYTES = 8
_SHARD_BYTES = 4
_NUMBER_BYTES = 8  # of the number of records


@dataclasses.dataclass(frozen=True)
class Run:
    """Records of a pool for a shard, or for a group of shards.

    Attributes:
        split: "train" or "eval".
        shard: number of the shard, or the first of a group.
        ranks: uint64 [records], rising: the order of records in the shard.
        records: batches of framed records and their offsets, see `encode_records`.
        shards: int64 [records], not falling, in a run for a group of shards, where `ranks` rise
            within each shard; else None.
    """

    split: str
    shard: int
    ranks: np.ndarray
    records: Iterable[tuple[np.ndarray, np.ndarray]]
    shards: np.ndarray | None = None

    def parts(self) -> Iterator[memoryview]:
        """Yield the parts of one blob, see the module."""
        sizes = []
        for data, offsets in self.records:
            sizes.append(np.diff(offsets).astype(np.uint32))
            yield data.data
        yield np.concatenate(sizes).data.cast("B")
        yield np.ascontiguousarray(self.ranks).data.cast("B")
        if self.shards is not None:
            yield self.shards.astype(np.uint32).data.cast("B")
        yield np.array([len(self.ranks)], np.uint64).data.cast("B")


class _StoredRun:
    """A stored run, read in order by ranges; `offsets` are int64 [records + 1]."""

    def __init__(self, store: BlobStore, reference: BlobReference):
        self._store = store
        self._reference = reference
        is_small = reference.length <= _SMALL_RUN_BYTES
        self._whole = store.read(reference) if store.is_remote and is_small else None
        index_end = reference.length - _NUMBER_BYTES
        number = self._read(index_end, _NUMBER_BYTES)
        count = int(np.frombuffer(number, np.uint64)[0])
        index_bytes = (_SIZE_BYTES + _RANK_BYTES) * count
        index = self._read(index_end - index_bytes, index_bytes)
        self._tail = index + number
        self._crc32c = 0
        self.ranks = np.frombuffer(index, np.uint64, count, _SIZE_BYTES * count)
        self.offsets = offsets_of(np.frombuffer(index, np.uint32, count))

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return the bytes of the records, uint8; `begin` is the `end` of the last call."""
        data = self._read(begin, end - begin)
        self._crc32c = google_crc32c.extend(self._crc32c, data)
        return np.frombuffer(data, np.uint8)

    def _read(self, start: int, length: int) -> bytes:
        if self._whole is not None:
            return self._whole[start : start + length]
        return self._store.read(self._reference, start, length)

    def check(self) -> None:
        """Raise RunnerFailed, once all is read, if it differs from the bytes that were written."""
        if google_crc32c.extend(self._crc32c, self._tail) != self._reference.crc32c:
            raise RunnerFailed(
                f"{self._reference.name}: differs from the bytes that were written; the storage of "
                "the output is damaged or has changed while the job ran; run the same command again"
            )


def merge_runs(store: BlobStore, references: list[BlobReference]) -> Iterator[np.ndarray]:
    """Yield the records of all runs in the order of their ranks, some 16 MB (uint8) at a time.

    Ranks and sizes of all records are in memory, 12 bytes each; records are read when their turn
    comes.

    Args:
        store: that has the runs.
        references: of the runs.

    Raises:
        RunnerFailed: a run differs from the bytes that were written.
    """
    runs = [_StoredRun(store, reference) for reference in references]
    if not runs:
        return
    sizes = np.concatenate([np.diff(run.offsets) for run in runs])
    run_of = np.repeat(np.arange(len(runs)), [len(run.ranks) for run in runs])
    order = np.argsort(np.concatenate([run.ranks for run in runs]), kind="stable")
    done = np.cumsum(sizes[order])
    taken = np.zeros(len(runs), np.int64)
    begin = 0
    while begin < len(order):
        limit = (done[begin - 1] if begin else 0) + _CHUNK_BYTES
        end = max(int(np.searchsorted(done, limit, side="right")), begin + 1)
        members = run_of[order[begin:end]]
        yield _gather_records(runs, taken, members)
        taken += np.bincount(members, minlength=len(runs))
        begin = end
    for run in runs:
        run.check()


def _gather_records(runs: list[_StoredRun], taken: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return the next records, uint8.

    Args:
        runs: to take from.
        taken: int64 [runs], records taken so far.
        members: int64 [records], the run of each next record.
    """
    counts = np.bincount(members, minlength=len(runs))
    ranges = [
        run.offsets[first : first + count + 1]
        for run, first, count in zip(runs, taken, counts, strict=True)
    ]
    data = np.empty(sum(int(offsets[-1] - offsets[0]) for offsets in ranges), np.uint8)
    starts = np.empty(len(members), np.int64)
    sizes = np.empty(len(members), np.int64)
    by_run = np.argsort(members, kind="stable")
    at = 0  # bytes of `data` that are set
    filled = 0  # records
    for run, offsets, count in zip(runs, ranges, counts, strict=True):
        if not count:
            continue
        part = run.read(int(offsets[0]), int(offsets[-1]))
        data[at : at + len(part)] = part
        places = by_run[filled : filled + count]
        starts[places] = offsets[:-1] - offsets[0] + at
        sizes[places] = np.diff(offsets)
        at += len(part)
        filled += count
    return take_ranges(data, starts, sizes)


class _HashingStream:
    """A file that is hashed while it is written."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, data: bytes | memoryview) -> int:
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def write_shard(path: str | Path, parts: Iterable[np.ndarray], *, compression: str) -> str:
    """Write framed records as a TFRecord file, whole.

    Args:
        path: of the file.
        parts: uint8 arrays.
        compression: `gzip`, or anything else for none.

    Returns:
        The file's SHA-256.
    """
    with replacing_file(path) as aside, aside.open("wb") as file:
        stream = _HashingStream(file)
        opened: AbstractContextManager[Any] = nullcontext(stream)
        if compression == "gzip":  # without name and time: equal records make equal bytes
            opened = gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0)
        with opened as target:
            for part in parts:
                target.write(part.data)
    return stream.digest.hexdigest()


def split_group_runs(split: str, blobs: list[bytes]) -> Iterator[Run]:
    """Split the runs of a group of shards into a run for each shard.

    Args:
        split: "train" or "eval".
        blobs: whole, joined from `Run.parts`.
    """
    parts_of_blobs = [_parts_of_group_run(blob) for blob in blobs]
    data, sizes, ranks, shards = map(np.concatenate, zip(*parts_of_blobs, strict=True))
    starts = offsets_of(sizes)[:-1]
    order = np.lexsort((ranks, shards))
    numbers, firsts = np.unique(shards[order], return_index=True)
    for number, begin, end in zip(numbers, firsts, [*firsts[1:], len(order)], strict=True):
        members = order[begin:end]
        lengths = sizes[members].astype(np.int64)
        records = take_ranges(data, starts[members], lengths)
        yield Run(split, int(number), ranks[members], [(records, offsets_of(lengths))])


def _parts_of_group_run(blob: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the parts of a run for a group of shards.

    Returns:
        The records, uint8; their sizes, uint32; ranks, uint64; and shards, uint32 [records].
    """
    index_end = len(blob) - _NUMBER_BYTES
    count = int(np.frombuffer(blob, np.uint64, 1, index_end)[0])
    sizes_at = index_end - (_SIZE_BYTES + _RANK_BYTES + _SHARD_BYTES) * count
    ranks_at = sizes_at + _SIZE_BYTES * count
    shards_at = ranks_at + _RANK_BYTES * count
    return (
        np.frombuffer(blob, np.uint8, sizes_at),
        np.frombuffer(blob, np.uint32, count, sizes_at),
        np.frombuffer(blob, np.uint64, count, ranks_at),
        np.frombuffer(blob, np.uint32, count, shards_at),
    )
