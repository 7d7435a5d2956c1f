"""Records of documents and lines, stored by partitions of their keys; references are shuffled."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from pipeline.beam.blobs import BlobReference, BlobStore, BlobWriter

_NUM_PARTITIONS = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class DropJob:
    """What is to be dropped, and where data are stored; sent to the workers.

    Attributes:
        documents: whether documents are dropped.
        bands: bands of a signature and rows of a band, for near duplicates; None to leave them.
        threshold: similarity from which documents are near duplicates.
        lines: whether repeated lines are dropped.
        store: where text and records wait.
        folder: shared by all workers and the submitting process.
    """

    documents: bool
    bands: tuple[int, int] | None
    threshold: float
    lines: bool
    store: BlobStore
    folder: str


def partitions_of(keys: np.ndarray) -> np.ndarray:
    """The partition that each key, a 64-bit hash, belongs to: uint64 of the same shape."""
    return (keys >> np.uint64(40)) % np.uint64(_NUM_PARTITIONS)


def partition_rows(
    rows: np.ndarray, keys: np.ndarray, writer: BlobWriter
) -> list[tuple[int, BlobReference]]:
    """Stores the rows of each partition of the keys that has any."""
    partitions = partitions_of(keys)
    order = np.argsort(partitions, kind="stable")
    rows = rows[order]
    borders = np.searchsorted(partitions[order], np.arange(_NUM_PARTITIONS + 1, dtype=np.uint64))
    return [
        (partition, writer.add([rows[borders[partition] : borders[partition + 1]].tobytes()]))
        for partition in range(_NUM_PARTITIONS)
        if borders[partition] < borders[partition + 1]
    ]


def read_rows(store: BlobStore, references: Iterable[BlobReference], kind: np.dtype) -> np.ndarray:
    """Rows that `partition_rows` stored, of all references one after the other."""
    return np.concatenate(
        [np.empty(0, kind), *(np.frombuffer(store.read(item), kind) for item in references)]
    )
