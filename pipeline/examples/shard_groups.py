"""Groups of shards: the level between pools and shards of a corpus that has many of both.

A terabyte of text has 32,768 pools and, with ten passes, 524,288 shards. A pool has one or two
records for each, and references to such short runs would be more than the records. So a pool's runs
go to groups of shards first, and are merged into longer runs of single shards there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import apache_beam as beam
import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.kernels import take_ranges
from pipeline.beam.blobs import BlobReference, BlobStore, BlobWriter, LabeledBlob
from pipeline.examples.runs import Run

GROUP = "group"
_CHUNK_BYTES = 128_000_000


def group_label(split: str, first_shard: int) -> str:
    """The key of a group of shards."""
    return f"{split}-{first_shard:06d}"


class PartitionGroups(beam.DoFn):
    """Splits the runs of a group into runs of its shards, a bounded number of bytes at a time.

    Args:
        store: where runs are.
        name_of_shard: of a split and a number.
    """

    def __init__(self, store: BlobStore, name_of_shard: Callable[[str, int], str]):
        self._store = store
        self._name_of_shard = name_of_shard

    def process(
        self, group: tuple[str, Iterable[BlobReference]]
    ) -> Iterator[tuple[str, BlobReference]]:
        """Yields (shard's name, reference to a run of records)."""
        label, references = group
        split = label.partition("-")[0]
        for name, reference in self._store.once(
            f"{GROUP}-{label}", lambda writer: self._partition(split, references, writer)
        ):
            yield str(name), reference

    def _partition(
        self, split: str, references: Iterable[BlobReference], writer: BlobWriter
    ) -> Iterator[LabeledBlob]:
        for blobs in _load_some(self._store, references):
            for run in split_group_runs(split, blobs):
                yield self._name_of_shard(split, run.shard), writer.add(run.parts())


def _load_some(store: BlobStore, references: Iterable[BlobReference]) -> Iterator[list[bytes]]:
    loaded: list[bytes] = []
    size = 0
    for reference in references:
        if loaded and size + reference.length > _CHUNK_BYTES:
            yield loaded
            loaded, size = [], 0
        loaded.append(store.read(reference))
        size += reference.length
    if loaded:
        yield loaded


def split_group_runs(split: str, blobs: list[bytes]) -> Iterator[Run]:
    """Merges the runs of a group, as stored, and yields one for each shard that gets records."""
    counts = [int(np.frombuffer(blob[-8:], np.uint64)[0]) for blob in blobs]
    indexes = [len(blob) - 8 - 16 * count for blob, count in zip(blobs, counts, strict=True)]
    sizes, ranks, shards = (
        np.concatenate(
            [
                np.frombuffer(blob, dtype, count, index + before * count)
                for blob, count, index in zip(blobs, counts, indexes, strict=True)
            ]
        )
        for dtype, before in ((np.uint32, 0), (np.uint64, 4), (np.uint32, 12))
    )
    data = np.concatenate(
        [np.frombuffer(blob, np.uint8, index) for blob, index in zip(blobs, indexes, strict=True)]
    )
    starts = offsets_of(sizes)[:-1]
    order = np.lexsort((ranks, shards))
    numbers, firsts = np.unique(shards[order], return_index=True)
    for number, begin, end in zip(numbers, firsts, [*firsts[1:], len(order)], strict=True):
        members = order[begin:end]
        lengths = sizes[members].astype(np.int64)
        records = take_ranges(data, starts[members], lengths)
        yield Run(split, int(number), ranks[members], [(records, offsets_of(lengths))])
