"""The Beam transform that drops documents and lines that occur again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import apache_beam as beam
import numpy as np

from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.blobs import BlobReference, BlobStore, BlobWriter
from pipeline.beam.files import write_shared_file
from pipeline.beam.packing import pack
from pipeline.corpus.document_block import DocumentBlock, document_hashes, read_block
from pipeline.corpus.duplicates.find_near import find_near
from pipeline.corpus.duplicates.folding import FoldedBlock, fold_block
from pipeline.corpus.duplicates.near_duplicates import (
    BAND,
    SIGNATURE,
    band_keys,
    choose_bands,
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
    NamedRows,
    choose_dropped,
    find_repeated,
    lines_of_block,
    merge_kept,
    merge_occurrences,
    partition_rows,
    partitions_of,
    read_rows,
)
from pipeline.corpus.evidence import Evidence
from pipeline.corpus.report import DUPLICATES


class DropDuplicates(beam.PTransform):
    """Drops documents and lines according to `CorpusSection.duplicates` and `duplicate_lines`.

    Only small records are shuffled, partitioned by hash, while blocks wait in `store`. The result
    depends on the documents only, not on files, blocks or workers.

        blocks ─┬─ text ────────────────────────────────────────────────────────────────┬─ blocks
                ├─ occurrences ─┬─────────────────────────────────┬─ documents to drop ─┤
                ├─ signatures ──┴─ candidates ── groups of near ones                    │
                ├─ bands ────────── pairs ┴                                             │
                └─ lines ── of the documents that stay ── lines to drop ────────────────┘

    Args:
        config: what is dropped.
        store: where blocks and records wait.
        folder: for lists of dropped documents; shared by all workers and the submitting process.
    """

    def __init__(self, config: CorpusSection, store: BlobStore, folder: str):
        super().__init__()
        bands = None
        if config.duplicates == "near":
            bands = choose_bands(config.near_duplicate_threshold)
        self._job = DropJob(
            documents=config.duplicates != "keep",
            bands=bands,
            threshold=config.near_duplicate_threshold,
            lines=config.duplicate_lines == "drop",
            store=store,
            folder=folder,
        )

    @property
    def needs_text(self) -> bool:
        return self._job.documents or self._job.lines

    def expand(self, blocks: beam.PCollection[DocumentBlock]) -> beam.PCollection[DocumentBlock]:
        job = self._job
        if not self.needs_text:
            return blocks
        parts = blocks | "StoreBlocks" >> beam.FlatMap(store_block, job).with_outputs(
            OCCURRENCES, SIGNATURES, BANDS, LINES, main=TEXT
        )
        nothing = blocks.pipeline | "Nothing" >> beam.Create([])
        documents = lines = nothing
        if job.documents:
            kept = find_near(parts, job.store, job.threshold) if job.bands else nothing
            documents = (
                {"occurrences": parts[OCCURRENCES], "kept": kept}
                | "GatherEquals" >> beam.CoGroupByKey()
                | "ChooseDocuments" >> beam.FlatMap(choose_documents, job)
            )
        if job.lines:
            lines = (
                {"lines": parts[LINES], "documents": documents}
                | "GatherLines" >> beam.CoGroupByKey()
                | "PartitionLines" >> beam.FlatMap(partition_lines, job)
                | "GatherEqualLines" >> beam.GroupByKey()
                | "ChooseLines" >> beam.FlatMap(choose_lines, job)
            )
        return (
            {"text": parts[TEXT], "documents": documents, "lines": lines}
            | "GatherDecisions" >> beam.CoGroupByKey()
            | "DropFromBlocks" >> beam.FlatMap(drop_from_stored, job)
        )


# Names of the outputs of `store_block`.
TEXT = "text"
OCCURRENCES = "occurrences"
SIGNATURES = "signatures"
BANDS = "bands"
LINES = "lines"
Output: TypeAlias = beam.pvalue.TaggedOutput
# The documents of a block that go, and whether each is a near duplicate.
DocumentsToDrop = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DropJob:
    """What the steps of `DropDuplicates` need to know.

    Attributes:
        documents: whether documents are dropped.
        bands: number of bands of a signature and of rows of a band, for near duplicates; None to
            leave them.
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


def store_block(block: DocumentBlock, job: DropJob) -> Iterator[Any]:
    """Store a block, and records of its documents and lines.

    Yields:
        (block, reference to its text), and tagged outputs of (partition or block, reference to
        records).
    """
    block_id = (block.source, block.index)
    folded = fold_block(block)
    identities = document_hashes(block)
    with job.store.writer() as writer:
        outputs: list[Any] = [(block_id, writer.add(pack(block)))]
        if job.documents:
            outputs += _store_occurrences(block, folded, identities, writer)
        if job.bands:
            outputs += _store_signatures(folded, writer, job.bands)
        if job.lines:
            rows = lines_of_block(block, folded.line_keys, identities)
            outputs.append(Output(LINES, (block_id, writer.add([rows.tobytes()]))))
    yield from outputs


def _store_occurrences(
    block: DocumentBlock, folded: FoldedBlock, identities: np.ndarray, writer: BlobWriter
) -> Iterator[Output]:
    """Store the OCCURRENCE records of a block's documents by partition."""
    rows = np.zeros(block.num_documents, OCCURRENCE)
    rows["key"], rows["identity"] = folded.document_keys, identities
    rows["line"], rows["document"] = block.document_lines, np.arange(len(rows))
    partitions = partitions_of(rows["key"])
    for partition in np.unique(partitions):
        part = NamedRows([(block.source, block.index)], rows[partitions == partition])
        yield Output(OCCURRENCES, (int(partition), writer.add(pack(part))))


def _store_signatures(
    folded: FoldedBlock, writer: BlobWriter, bands: tuple[int, int]
) -> Iterator[Output]:
    """Store signatures and bands of a block's different documents that have words, by partition."""
    keys, documents = np.unique(folded.document_keys, return_index=True)
    has_words = np.diff(folded.document_offsets)[documents] > 0
    keys, documents = keys[has_words], documents[has_words]
    signatures = np.empty(len(keys), SIGNATURE)
    signatures["key"] = keys
    minima, signatures["sketch"] = signatures_of(folded.words, folded.document_offsets, documents)
    for part in partition_rows(signatures, keys, writer):
        yield Output(SIGNATURES, part)
    rows = np.empty(len(keys) * bands[0], BAND)
    rows["band"] = band_keys(minima, *bands).reshape(-1)
    rows["key"] = np.repeat(keys, bands[0])
    for part in partition_rows(rows, rows["band"], writer):
        yield Output(BANDS, part)


def choose_documents(
    partition: tuple[int, dict[str, list[BlobReference]]], job: DropJob
) -> Iterator[tuple[BlockId, DocumentsToDrop]]:
    """Decide which documents of a partition go, and list them in a file.

    Args:
        partition: its number, and references to `occurrences` and `kept`.
        job: where records and lists are.

    Yields:
        A block, and which of its documents go.
    """
    number, parts = partition
    store = job.store
    occurrences = merge_occurrences(store.read(item) for item in parts["occurrences"])
    dropped = choose_dropped(occurrences, merge_kept(store.read(item) for item in parts["kept"]))
    if not len(dropped.rows):
        return
    write_shared_file(
        job.folder,
        f"{DUPLICATES}-{number:05d}.jsonl",
        "".join(_report_lines(occurrences.names, dropped)).encode("utf-8"),
    )
    order = np.argsort(dropped.rows["block"], kind="stable")
    documents, is_near = dropped.rows["document"][order], dropped.is_near[order]
    blocks, begins = np.unique(dropped.rows["block"][order], return_index=True)
    for block, begin, end in zip(blocks, begins, [*begins[1:], len(order)], strict=True):
        yield occurrences.names[block], (documents[begin:end], is_near[begin:end])


def _report_lines(blocks: list[BlockId], dropped: Dropped) -> Iterator[str]:
    """Yield a line of JSON for each dropped document, with the one that stays."""
    rows = dropped.rows
    for place in range(len(rows)):
        is_near = bool(dropped.is_near[place])
        entry = {
            "reason": NEAR_DUPLICATE if is_near else EXACT_COPY,
            "source": blocks[rows["block"][place]][0],
            "line": int(rows["line"][place]),
            "identity": f"{rows['identity'][place]:016x}",
            "kept_source": dropped.kept_files[place],
            "kept_line": int(dropped.kept["line"][place]),
            "kept_identity": f"{dropped.kept['identity'][place]:016x}",
            "similarity": round(float(dropped.kept["similarity"][place]), 4),
        }
        yield json.dumps(entry, ensure_ascii=False) + "\n"


def partition_lines(
    block: tuple[BlockId, dict[str, list[Any]]], job: DropJob
) -> Iterator[tuple[int, tuple[BlockId, BlobReference]]]:
    """Store the lines of the documents of a block that stay by partition of their keys."""
    block_id, parts = block
    store = job.store
    rows = read_rows(store, parts["lines"], LINE)
    for documents, _ in parts["documents"]:
        rows = rows[~np.isin(rows["document"], documents)]
    with store.writer() as writer:
        stored = partition_rows(rows, rows["key"], writer)
    for partition, reference in stored:
        yield partition, (block_id, reference)


def choose_lines(
    partition: tuple[int, Iterable[tuple[BlockId, BlobReference]]], job: DropJob
) -> Iterator[tuple[BlockId, np.ndarray]]:
    """Yield the lines of blocks that go, of a partition of keys."""
    store = job.store
    yield from find_repeated((block_id, store.read(item)) for block_id, item in partition[1])


def drop_from_stored(
    block: tuple[BlockId, dict[str, list[Any]]], job: DropJob
) -> Iterator[DocumentBlock]:
    """Read a block again and drop documents and lines, all by their numbers in it."""
    _, parts = block
    (reference,) = parts["text"]
    stored = read_block(job.store.read(reference))
    is_dropped = np.zeros(stored.num_documents, np.bool_)
    is_dropped_line = np.zeros(stored.num_lines, np.bool_)
    for numbers in parts["lines"]:
        is_dropped_line[numbers] = True
    for numbers, is_near in parts["documents"]:
        is_dropped[numbers] = True
        near = int(is_near.sum())
        dropped = {NEAR_DUPLICATE: near, EXACT_COPY: len(is_near) - near}
        stored = stored.adding(Evidence(dropped=dropped))
    # Lines are numbered in the whole block, so those of dropped documents are left out first.
    of_dropped = np.repeat(is_dropped, np.diff(stored.lines_of_documents))
    is_dropped_line = is_dropped_line[~of_dropped]
    kept = stored.keep_documents(~is_dropped)
    if is_dropped_line.any():
        kept = kept.drop_lines(is_dropped_line, REPEATED_LINE, ONLY_REPEATED_LINES)
    yield kept
