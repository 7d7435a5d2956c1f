"""The steps of dropping duplicates, between which Beam shuffles references to records.

How they are joined is in `duplicates.py`; what they decide, in `occurrences.py`,
`near_duplicates.py` and `repeated_lines.py`.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import apache_beam as beam
import numpy as np

from pipeline.beam.blobs import BlobReference, BlobStore, BlobWriter
from pipeline.beam.files import write_shared_file
from pipeline.corpus.document_block import DocumentBlock, add_reason, document_hashes
from pipeline.corpus.duplicates.folding import FoldedBlock, fold_block
from pipeline.corpus.duplicates.near_duplicates import (
    BAND,
    PAIR,
    SIGNATURE,
    band_keys,
    choose_kept,
    merge_nodes,
    pair_candidates,
    select_nodes,
    signatures_of,
)
from pipeline.corpus.duplicates.occurrences import (
    EXACT_COPY,
    LINE,
    NEAR_DUPLICATE,
    OCCURRENCE,
    ONLY_REPEATED_LINES,
    REPEATED_LINE,
    BlockId,
    Dropped,
    Occurrences,
    choose_dropped,
    find_repeated,
    lines_of_block,
    merge_kept,
    merge_occurrences,
)

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


REPORT_NAME = "corpus-duplicates-{}.jsonl"
TEXT, OCCURRENCES, SIGNATURES, BANDS, LINES = "text", "occurrences", "signatures", "bands", "lines"
PAIRS, KEYS = "pairs", "keys"
_EVERYWHERE = 0  # the key of what is processed on one worker

Output: TypeAlias = beam.pvalue.TaggedOutput
# The documents of a block that go, and whether each is a near duplicate.
DocumentsToDrop = tuple[np.ndarray, np.ndarray]


class StoreBlock(beam.DoFn):
    """Stores a block's text and the records of its documents and lines."""

    def __init__(self, job: DropJob):
        self._job = job

    def process(self, block: DocumentBlock) -> Iterator[Any]:
        job = self._job
        block_id = (block.source, block.index)
        folded = fold_block(block)
        identities = document_hashes(block)
        outputs: list[Any] = []
        with job.store.writer() as writer:
            outputs.append((block_id, writer.add([pickle.dumps(block, protocol=5)])))
            if job.documents:
                outputs += self._occurrences(block, folded, identities, writer)
            if job.bands:
                outputs += self._signatures(folded, writer, job.bands)
            if job.lines:
                rows = lines_of_block(block, folded.line_keys, identities)
                outputs.append(Output(LINES, (block_id, writer.add([rows.tobytes()]))))
        yield from outputs

    def _occurrences(
        self,
        block: DocumentBlock,
        folded: FoldedBlock,
        identities: np.ndarray,
        writer: BlobWriter,
    ) -> Iterator[Output]:
        rows = np.zeros(block.num_documents, OCCURRENCE)
        rows["key"], rows["identity"] = folded.document_keys, identities
        rows["line"], rows["document"] = block.document_lines, np.arange(len(rows))
        partitions = partitions_of(rows["key"])
        for partition in np.unique(partitions):
            part = Occurrences([(block.source, block.index)], rows[partitions == partition])
            yield Output(OCCURRENCES, (int(partition), writer.add([part.to_bytes()])))

    def _signatures(
        self, folded: FoldedBlock, writer: BlobWriter, bands: tuple[int, int]
    ) -> Iterator[Output]:
        keys, documents = np.unique(folded.document_keys, return_index=True)
        has_words = np.diff(folded.document_offsets)[documents] > 0
        keys, documents = keys[has_words], documents[has_words]
        signatures = np.empty(len(keys), SIGNATURE)
        signatures["key"] = keys
        signatures["minima"] = signatures_of(folded.words, folded.document_offsets, documents)
        for part in partition_rows(signatures, keys, writer):
            yield Output(SIGNATURES, part)
        rows = np.empty(len(keys) * bands[0], BAND)
        rows["band"] = band_keys(signatures["minima"], *bands).reshape(-1)
        rows["key"] = np.repeat(keys, bands[0])
        for part in partition_rows(rows, rows["band"], writer):
            yield Output(BANDS, part)


class PairCandidates(beam.DoFn):
    """Pairs documents with equal bands; sends their keys to the partition of their records."""

    def __init__(self, job: DropJob):
        self._job = job

    def process(self, bands: tuple[int, Iterable[BlobReference]]) -> Iterator[Any]:
        store = self._job.store
        pairs = pair_candidates(read_rows(store, bands[1], BAND))
        if not len(pairs):
            return
        keys = np.unique(np.concatenate([pairs["low"], pairs["high"]]))
        with store.writer() as writer:
            stored = writer.add([pairs.tobytes()])
            partitions = partition_rows(keys, keys, writer)
        yield _EVERYWHERE, stored
        for part in partitions:
            yield Output(KEYS, part)


class SelectCandidates(beam.DoFn):
    """Sends the records of the documents that are in pairs to one worker."""

    def __init__(self, job: DropJob):
        self._job = job

    def process(
        self, partition: tuple[int, dict[str, list[BlobReference]]]
    ) -> Iterator[tuple[int, BlobReference]]:
        store, parts = self._job.store, partition[1]
        selected = np.unique(read_rows(store, parts["keys"], np.dtype("u8")))
        if not len(selected):
            return
        nodes = select_nodes(
            merge_occurrences(store.read(item) for item in parts["occurrences"]),
            read_rows(store, parts["signatures"], SIGNATURE),
            selected,
        )
        with store.writer() as writer:
            stored = writer.add([nodes.to_bytes()])
        yield _EVERYWHERE, stored


class ConnectNear(beam.DoFn):
    """Compares all candidates and sends each partition of the keys the documents to drop."""

    def __init__(self, job: DropJob):
        self._job = job

    def process(
        self, candidates: tuple[int, dict[str, list[BlobReference]]]
    ) -> Iterator[tuple[int, BlobReference]]:
        store, parts = self._job.store, candidates[1]
        kept = choose_kept(
            merge_nodes(store.read(item) for item in parts["nodes"]),
            read_rows(store, parts["pairs"], PAIR),
            self._job.threshold,
        )
        partitions = partitions_of(kept.keys)
        with store.writer() as writer:
            stored = [
                (int(partition), writer.add([kept.select(partitions == partition).to_bytes()]))
                for partition in np.unique(partitions)
            ]
        yield from stored


class ChooseDocuments(beam.DoFn):
    """Chooses the documents to drop in a partition of the keys, and lists them by block."""

    def __init__(self, job: DropJob):
        self._job = job

    def process(
        self, partition: tuple[int, dict[str, list[BlobReference]]]
    ) -> Iterator[tuple[BlockId, DocumentsToDrop]]:
        number, parts = partition
        store = self._job.store
        occurrences = merge_occurrences(store.read(item) for item in parts["occurrences"])
        dropped = choose_dropped(
            occurrences, merge_kept(store.read(item) for item in parts["kept"])
        )
        if not len(dropped.rows):
            return
        write_shared_file(
            self._job.folder,
            REPORT_NAME.format(f"{number:05d}"),
            "".join(_report_lines(occurrences.blocks, dropped)).encode("utf-8"),
        )
        order = np.argsort(dropped.rows["block"], kind="stable")
        documents, is_near = dropped.rows["document"][order], dropped.is_near[order]
        blocks, begins = np.unique(dropped.rows["block"][order], return_index=True)
        for block, begin, end in zip(blocks, begins, [*begins[1:], len(order)], strict=True):
            yield occurrences.blocks[block], (documents[begin:end], is_near[begin:end])


def _report_lines(blocks: list[BlockId], dropped: Dropped) -> Iterator[str]:
    rows = dropped.rows
    for place in range(len(rows)):
        is_near = bool(dropped.is_near[place])
        entry = {
            "reason": NEAR_DUPLICATE if is_near else EXACT_COPY,
            "source": blocks[rows["block"][place]][0],
            "line": int(rows["line"][place]),
            "identity": f"{rows['identity'][place]:016x}",
            "kept_source": dropped.kept_files[place],
            "kept_line": int(dropped.kept_lines[place]),
            "kept_identity": f"{dropped.kept_identities[place]:016x}",
            "similarity": round(float(dropped.similarities[place]), 4),
        }
        yield json.dumps(entry, ensure_ascii=False) + "\n"


class PartitionLines(beam.DoFn):
    """The lines of a block's documents that stay, by partitions of their keys."""

    def __init__(self, job: DropJob):
        self._job = job

    def process(
        self, block: tuple[BlockId, dict[str, list[Any]]]
    ) -> Iterator[tuple[int, tuple[BlockId, BlobReference]]]:
        block_id, parts = block
        store = self._job.store
        rows = read_rows(store, parts["lines"], LINE)
        for documents, _ in parts["documents"]:
            rows = rows[~np.isin(rows["document"], documents)]
        with store.writer() as writer:
            stored = partition_rows(rows, rows["key"], writer)
        for partition, reference in stored:
            yield partition, (block_id, reference)


class ChooseLines(beam.DoFn):
    """Yields the repeated lines of each block."""

    def __init__(self, job: DropJob):
        self._job = job

    def process(
        self, partition: tuple[int, Iterable[tuple[BlockId, BlobReference]]]
    ) -> Iterator[tuple[BlockId, np.ndarray]]:
        store = self._job.store
        yield from find_repeated((block_id, store.read(item)) for block_id, item in partition[1])


class DropFromBlock(beam.DoFn):
    """Reads a block again and drops what is to be dropped."""

    def __init__(self, job: DropJob):
        self._job = job

    def process(self, block: tuple[BlockId, dict[str, list[Any]]]) -> Iterator[DocumentBlock]:
        _, parts = block
        (reference,) = parts["text"]
        yield drop_from_block(
            pickle.loads(self._job.store.read(reference)), parts["documents"], parts["lines"]
        )


def drop_from_block(
    block: DocumentBlock, documents: list[DocumentsToDrop], lines: list[np.ndarray]
) -> DocumentBlock:
    """The block without some documents and lines, all by their numbers in it."""
    goes = np.zeros(block.num_documents, np.bool_)
    line_goes = np.zeros(block.num_lines, np.bool_)
    for numbers in lines:
        line_goes[numbers] = True
    dropped = block.dropped
    for numbers, is_near in documents:
        goes[numbers] = True
        dropped = add_reason(dropped, NEAR_DUPLICATE, int(is_near.sum()))
        dropped = add_reason(dropped, EXACT_COPY, int((~is_near).sum()))
    line_stays = ~np.repeat(goes, np.diff(block.lines_of_documents))
    block = dataclasses.replace(block.keep_documents(~goes), dropped=dropped)
    line_goes = line_goes[line_stays]
    if not line_goes.any():
        return block
    block = block.keep_lines(~line_goes, ONLY_REPEATED_LINES)
    return dataclasses.replace(
        block,
        dropped_lines=add_reason(block.dropped_lines, REPEATED_LINE, int(line_goes.sum())),
    )
