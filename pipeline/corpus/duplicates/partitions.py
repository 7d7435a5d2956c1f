"""Records of documents and lines, stored by shares of their keys while references are shuffled."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from pipeline.beam.blobs import BlobReference, BlobStore, BlobWriter

_SHARES = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class DropJob:
    """What is to be dropped, and where things lie; travels to the workers.

    Attributes:
        documents: whether documents are dropped.
        bands: bands of a signature and rows of a band, for near duplicates; None to leave them.
        threshold: similarity from which documents are near duplicates.
        lines: whether repeated lines are dropped.
        store: where text and records wait.
        folder: one that all workers and the submitting process share.
    """

    documents: bool
    bands: tuple[int, int] | None
    threshold: float
    lines: bool
    store: BlobStore
    folder: str


def shares_of(keys: np.ndarray) -> np.ndarray:
    """The share that each key, a 64-bit hash, belongs to: uint64 of the same shape."""
    return (keys >> np.uint64(40)) % np.uint64(_SHARES)


def share_out(
    rows: np.ndarray, keys: np.ndarray, writer: BlobWriter
) -> list[tuple[int, BlobReference]]:
    """Stores the rows of each share of the keys that has any."""
    shares = shares_of(keys)
    order = np.argsort(shares, kind="stable")
    rows = rows[order]
    borders = np.searchsorted(shares[order], np.arange(_SHARES + 1, dtype=np.uint64))
    return [
        (share, writer.add([rows[borders[share] : borders[share + 1]].tobytes()]))
        for share in range(_SHARES)
        if borders[share] < borders[share + 1]
    ]


def read_rows(store: BlobStore, references: Iterable[BlobReference], kind: np.dtype) -> np.ndarray:
    """Rows that `share_out` stored, of all references one after the other."""
    return np.concatenate(
        [np.empty(0, kind), *(np.frombuffer(store.read(item), kind) for item in references)]
    )
