"""The Beam transform that drops documents and lines that occur again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np

from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.blobs import BlobReference, BlobStore
from pipeline.beam.files import write_shared_file
from pipeline.beam.packing import pack
from pipeline.corpus.document_block import DocumentBlock, document_hashes, read_block
from pipeline.corpus.duplicates.elsewhere import OtherCorpus, SignOther, find_elsewhere
from pipeline.corpus.duplicates.find_near import find_near
from pipeline.corpus.duplicates.folding import fold_block
from pipeline.corpus.duplicates.near_duplicates import choose_bands
from pipeline.corpus.duplicates.occurrences import (
    LINE,
    ONLY_REPEATED_LINES,
    REASONS,
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
    read_rows,
)
from pipeline.corpus.duplicates.signature_files import part_name, signature_part
from pipeline.corpus.duplicates.signing import (
    BANDS,
    OCCURRENCES,
    SIGNATURES,
    SIGNED,
    SIGNED_DOCUMENT,
    Output,
    occurrences_of,
    sign_documents,
    store_occurrences,
    store_signatures,
)
from pipeline.corpus.evidence import Evidence
from pipeline.corpus.report import DUPLICATES


class DropDuplicates(beam.PTransform):
    """Drops documents and lines as `duplicates`, `duplicates_against` and `duplicate_lines` say.

    Only small records are shuffled, partitioned by hash, while blocks wait in `store`. The result
    depends only on the documents, not on files, blocks or workers.

        blocks ─┬─ text ────────────────────────────────────────────────────────────────┬─ blocks
                ├─ occurrences ─┬─────────────────────────────────┬─ documents to drop ─┤
                ├─ signatures ──┴─ candidates ── groups of near ones                    │
                ├─ bands ────────── pairs ┴                                             │
                └─ lines ── of the documents that stay ── lines to drop ────────────────┘

    Args:
        config: kinds of duplicates to drop.
        store: where blocks and records wait.
        folder: for lists of dropped documents; shared by all workers and the submitting process.
        other: files of `duplicates_against`.

    Attributes:
        needs_text: whether texts are compared; otherwise blocks pass as they are.
    """

    def __init__(
        self,
        config: CorpusSection,
        store: BlobStore,
        folder: str,
        other: OtherCorpus | None = None,
    ):
        super().__init__()
        has_other = other is not None and bool(other.paths)
        self._job = DropJob(
            copies=config.duplicates != "keep",
            near=config.duplicates == "near",
            elsewhere=has_other,
            bands=choose_bands(config.near_duplicate_threshold),
            threshold=config.near_duplicate_threshold,
            lines=config.duplicate_lines == "drop",
            keeps_signatures=config.keeps_signatures,
            store=store,
            folder=folder,
        )
        self._sign_other = None
        if other is not None and has_other:
            self._sign_other = SignOther(config, other, store, self._job.bands, folder)
        self.needs_text = config.compares_documents

    def expand(self, blocks: beam.PCollection[DocumentBlock]) -> beam.PCollection[DocumentBlock]:
        job = self._job
        if not self.needs_text:
            return blocks
        parts = blocks | "StoreBlocks" >> beam.FlatMap(store_block, job).with_outputs(
            OCCURRENCES, SIGNATURES, BANDS, SIGNED, LINES, main=TEXT
        )
        records = {name: parts[name] for name in (OCCURRENCES, SIGNATURES, BANDS)}
        nothing = blocks.pipeline | "Nothing" >> beam.Create([])
        kept = nothing  # KEPT of near duplicates within the corpus
        elsewhere = nothing  # KEPT of near duplicates of another corpus
        documents = nothing  # to drop
        lines = nothing  # to drop
        if self._sign_other is not None:
            other = blocks.pipeline | "SignOther" >> self._sign_other
            elsewhere = find_elsewhere(records, other, job.store, job.threshold)
        if job.near:
            kept = find_near({**records, "gone": elsewhere}, job.store, job.threshold)
        if job.documents:
            outputs = {"kept": kept, "elsewhere": elsewhere, "signed": parts[SIGNED]}
            documents = (
                {"occurrences": parts[OCCURRENCES], **outputs}
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


# Names of outputs of `store_block`, besides those of `signing`.
TEXT = "text"
LINES = "lines"
_PLACE = ["block", "document"]  # fields that identify a document
# Numbers of the documents of a block to drop, and for each the number of its reason in REASONS.
DocumentsToDrop = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DropJob:
    """Settings of the steps of `DropDuplicates`.

    Attributes:
        copies: whether all but one of equal documents are dropped.
        near: whether near duplicates are dropped, too.
        elsewhere: whether near duplicates of documents of another corpus are dropped.
        bands: number of bands of a signature and of rows of a band.
        threshold: similarity from which documents are near duplicates.
        lines: whether repeated lines are dropped.
        keeps_signatures: whether the signatures of the documents that stay are written.
        store: where text and records wait.
        folder: shared by all workers and the submitting process.
    """

    copies: bool
    near: bool
    elsewhere: bool
    bands: tuple[int, int]
    threshold: float
    lines: bool
    keeps_signatures: bool
    store: BlobStore
    folder: str

    @property
    def documents(self) -> bool:
        """Return whether documents are compared."""
        return self.copies or self.elsewhere or self.keeps_signatures


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
            rows = occurrences_of(block, folded, identities)
            outputs += store_occurrences(NamedRows([block_id], rows), writer)
        if job.near or job.elsewhere or job.keeps_signatures:
            signed = sign_documents(folded)
            if job.near or job.elsewhere:
                outputs += store_signatures(signed, writer, job.bands)
            if job.keeps_signatures:
                stored = partition_rows(signed, signed["key"], writer)
                outputs += [Output(SIGNED, part) for part in stored]
        if job.lines:
            rows = lines_of_block(block, folded.line_keys, identities)
            outputs.append(Output(LINES, (block_id, writer.add([rows.tobytes()]))))
    yield from outputs


def choose_documents(
    partition: tuple[int, dict[str, list[BlobReference]]], job: DropJob
) -> Iterator[tuple[BlockId, DocumentsToDrop]]:
    """Choose the documents of a partition to drop, and list them in a file.

    Args:
        partition: its number, and references to `occurrences`, `kept`, `elsewhere` and `signed`.
        job: where records and lists are.

    Yields:
        A block, and its documents to drop.
    """
    number, parts = partition
    store = job.store
    occurrences = merge_occurrences(store.read(item) for item in parts["occurrences"])
    kept = merge_kept(store.read(item) for item in parts["kept"])
    elsewhere = merge_kept(store.read(item) for item in parts["elsewhere"])
    dropped = choose_dropped(occurrences, kept, elsewhere, copies=job.copies)
    if job.keeps_signatures:
        stays = ~np.isin(occurrences.rows[_PLACE], dropped.rows[_PLACE])
        staying = NamedRows(occurrences.names, occurrences.rows[stays])
        signed = read_rows(store, parts["signed"], SIGNED_DOCUMENT)
        write_shared_file(job.folder, part_name(number), signature_part(staying, signed))
    if not len(dropped.rows):
        return
    write_shared_file(
        job.folder,
        f"{DUPLICATES}-{number:05d}.jsonl",
        "".join(_report_lines(occurrences.names, dropped)).encode("utf-8"),
    )
    # Group them by block.
    order = np.argsort(dropped.rows["block"], kind="stable")
    documents = dropped.rows["document"][order]
    reasons = dropped.reasons[order]
    blocks, begins = np.unique(dropped.rows["block"][order], return_index=True)
    for block, begin, end in zip(blocks, begins, [*begins[1:], len(order)], strict=True):
        yield occurrences.names[block], (documents[begin:end], reasons[begin:end])


def _report_lines(blocks: list[BlockId], dropped: Dropped) -> Iterator[str]:
    """Yield a line of JSON for each dropped document, with the one that stays."""
    rows = dropped.rows
    for place in range(len(rows)):
        entry = {
            "reason": REASONS[dropped.reasons[place]],
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
    """Partition the lines of a block's remaining documents by their keys, and store them.

    Args:
        block: its id; `lines`, a reference to its lines, and `documents`, those to drop.
        job: where records are.

    Yields:
        Number of a partition, and the block with a reference to its lines there.
    """
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
    """Yield blocks with the numbers of their lines to drop, of one partition of keys."""
    store = job.store
    yield from find_repeated((block_id, store.read(item)) for block_id, item in partition[1])


def drop_from_stored(
    block: tuple[BlockId, dict[str, list[Any]]], job: DropJob
) -> Iterator[DocumentBlock]:
    """Read a stored block, and drop documents and lines by their numbers in it."""
    _, parts = block
    (reference,) = parts["text"]
    stored = read_block(job.store.read(reference))
    is_dropped = np.zeros(stored.num_documents, np.bool_)
    is_dropped_line = np.zeros(stored.num_lines, np.bool_)
    for numbers in parts["lines"]:
        is_dropped_line[numbers] = True
    for numbers, reasons in parts["documents"]:
        is_dropped[numbers] = True
        counts = np.bincount(reasons, minlength=len(REASONS)).tolist()
        stored = stored.adding(Evidence(dropped=dict(zip(REASONS, counts, strict=True))))
    # Lines are numbered in the whole block, so those of dropped documents are left out first.
    of_dropped = np.repeat(is_dropped, np.diff(stored.lines_of_documents))
    is_dropped_line = is_dropped_line[~of_dropped]
    kept = stored.keep_documents(~is_dropped)
    if is_dropped_line.any():
        kept = kept.drop_lines(is_dropped_line, REPEATED_LINE, ONLY_REPEATED_LINES)
    yield kept
