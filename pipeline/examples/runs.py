"""Runs: the records that one pool gives to one shard, sorted; and their merging into the shard."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.atomic_files import replacing_file
from bert_tf.base.checksums import HashingStream
from bert_tf.base.kernels import take_ranges
from pipeline.beam.blobs import BlobReference, BlobStore

_CHUNK_BYTES = 16_000_000


@dataclasses.dataclass(frozen=True)
class Run:
    """Records on their way to a shard.

    Attributes:
        split: "train" or "eval".
        shard: number of the shard.
        ranks: uint64 [records], rising: the order of records in the shard.
        records: batches of framed records and the offsets of each, as `frame_examples` makes them.
    """

    split: str
    shard: int
    ranks: np.ndarray
    records: Iterable[tuple[np.ndarray, np.ndarray]]

    def parts(self) -> Iterator[memoryview]:
        """The run as parts of one blob: the records, their sizes, their ranks, their number."""
        sizes = []
        for data, offsets in self.records:
            sizes.append(np.diff(offsets).astype(np.uint32))
            yield data.data
        yield np.concatenate(sizes).data.cast("B")
        yield np.ascontiguousarray(self.ranks).data.cast("B")
        yield np.array([len(self.ranks)], np.uint64).data.cast("B")


@dataclasses.dataclass(frozen=True)
class _StoredRun:
    reference: BlobReference
    ranks: np.ndarray
    offsets: np.ndarray


def _open_run(store: BlobStore, reference: BlobReference) -> _StoredRun:
    end = store.size(reference) - 8
    count = int(np.frombuffer(store.read(reference, end, 8), np.uint64)[0])
    index = store.read(reference, end - 12 * count, 12 * count)
    sizes = np.frombuffer(index, np.uint32, count)
    return _StoredRun(
        reference, np.frombuffer(index, np.uint64, count, 4 * count), offsets_of(sizes)
    )


def merge_runs(store: BlobStore, references: list[BlobReference]) -> Iterator[np.ndarray]:
    """The records of all runs in the order of their ranks, some 16 MB (uint8) at a time."""
    runs = [_open_run(store, reference) for reference in references]
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
        yield _gather_records(store, runs, taken, members)
        taken += np.bincount(members, minlength=len(runs))
        begin = end


def _gather_records(
    store: BlobStore, runs: list[_StoredRun], taken: np.ndarray, members: np.ndarray
) -> np.ndarray:
    """The next records, each from the run that `members` names, from what `taken` left of them."""
    counts = np.bincount(members, minlength=len(runs))
    stretches = [
        run.offsets[first : first + count + 1]
        for run, first, count in zip(runs, taken, counts, strict=True)
    ]
    data = np.empty(sum(int(offsets[-1] - offsets[0]) for offsets in stretches), np.uint8)
    starts = np.empty(len(members), np.int64)
    sizes = np.empty(len(members), np.int64)
    by_run = np.argsort(members, kind="stable")
    at = filled = 0
    for run, offsets, count in zip(runs, stretches, counts, strict=True):
        if not count:
            continue
        part = store.read(run.reference, int(offsets[0]), int(offsets[-1] - offsets[0]))
        data[at : at + len(part)] = np.frombuffer(part, np.uint8)
        places = by_run[filled : filled + count]
        starts[places] = offsets[:-1] - offsets[0] + at
        sizes[places] = np.diff(offsets)
        at += len(part)
        filled += count
    return take_ranges(data, starts, sizes)


def write_shard(path: str | Path, parts: Iterable[np.ndarray], *, compression: str) -> str:
    """Writes framed records as a TFRecord file, which appears whole.

    The gzip header has neither name nor time, so that equal records make equal bytes.

    Args:
        path: the file.
        parts: uint8 arrays.
        compression: "none" or "gzip".

    Returns:
        SHA-256 of the file.
    """
    with replacing_file(path) as aside, aside.open("wb") as file:
        stream = HashingStream(file)
        if compression == "gzip":
            with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
                _write_all(packed, parts)
        else:
            _write_all(stream, parts)
    return stream.sha256()


def _write_all(stream: HashingStream | gzip.GzipFile, parts: Iterable[np.ndarray]) -> None:
    for part in parts:
        stream.write(part.data)
