"""The Beam transform that drops documents and lines that occur again.

Blocks are stored once (`blobs.py`) and wait there while only records of a few bytes a document or
line are shuffled: what is to be dropped is decided on those, and the text is read again to drop it.

    blocks ─┬─ text ────────────────────────────────────────────────────────────────┬─ blocks
            ├─ occurrences ─┬─────────────────────────────────┬─ documents to drop ─┤
            ├─ signatures ──┴─ candidates ── groups of near ones                    │
            ├─ bands ────────── pairs ┴                                             │
            └─ lines ── of the documents that stay ── lines to drop ────────────────┘

Keys are shared out by their hash, so memory is bounded by a share of the small records; only the
candidates of near duplicates (about half a kilobyte each) and their pairs meet in one place.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import apache_beam as beam
import numpy as np

from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.atomic import replacing_file
from pipeline.corpus.blobs import BlobReference, BlobStore, BlobWriter
from pipeline.corpus.block import DocumentBlock, add_reason
from pipeline.corpus.files import read_shared_files, write_shared_file
from pipeline.corpus.folding import FoldedBlock, fold_block
from pipeline.corpus.identity import document_hashes
from pipeline.corpus.minhash import band_keys, choose_bands, signatures_of
from pipeline.corpus.near_duplicates import (
    BAND,
    PAIR,
    SIGNATURE,
    choose_kept,
    merge_nodes,
    pair_candidates,
    select_nodes,
)
from pipeline.corpus.occurrences import (
    EXACT_COPY,
    NEAR_DUPLICATE,
    OCCURRENCE,
    BlockId,
    Dropped,
    Occurrences,
    choose_dropped,
    merge_kept,
    merge_occurrences,
)
from pipeline.corpus.repeated_lines import (
    LINE,
    ONLY_REPEATED_LINES,
    REPEATED_LINE,
    find_repeated,
    lines_of_block,
)

_SHARES = 32
_REPORT = "corpus-duplicates-{}.jsonl"
_TEXT, _OCCURRENCES, _SIGNATURES, _BANDS, _LINES = (
    "text",
    "occurrences",
    "signatures",
    "bands",
    "lines",
)
_PAIRS, _KEYS = "pairs", "keys"
_EVERYWHERE = 0  # the key of what has to come to one place

Output: TypeAlias = beam.pvalue.TaggedOutput
# The documents of a block that go, and whether each is a near duplicate.
DocumentsToDrop = tuple[np.ndarray, np.ndarray]


class DropDuplicates(beam.PTransform):
    """Drops documents and lines as `CorpusSection.duplicates` and `duplicate_lines` say.

    What stays depends on the documents alone, not on files, blocks, workers or their order.

    Args:
        config: the job's section.
        store: where text waits.
        folder: one that all workers and the submitting process share, for `write_duplicates`.
    """

    def __init__(self, config: CorpusSection, store: BlobStore, folder: str):
        super().__init__()
        self._job = _Job(
            documents=config.duplicates != "keep",
            bands=choose_bands(config.near_duplicate_threshold)
            if config.duplicates == "near"
            else None,
            threshold=config.near_duplicate_threshold,
            lines=config.duplicate_lines == "drop",
            store=store,
            folder=folder,
        )

    def expand(self, blocks: beam.PCollection[DocumentBlock]) -> beam.PCollection[DocumentBlock]:
        """Stores, decides, reads again; nothing is done if nothing is to be dropped."""
        job = self._job
        if not job.documents and not job.lines:
            return blocks
        parts = blocks | "StoreBlocks" >> beam.ParDo(_StoreBlock(job)).with_outputs(
            _OCCURRENCES, _SIGNATURES, _BANDS, _LINES, main=_TEXT
        )
        nothing = blocks.pipeline | "Nothing" >> beam.Create([])
        documents = lines = nothing
        if job.documents:
            kept = _find_near(parts, job) if job.bands else nothing
            documents = (
                {"occurrences": parts[_OCCURRENCES], "kept": kept}
                | "GatherEquals" >> beam.CoGroupByKey()
                | "ChooseDocuments" >> beam.ParDo(_ChooseDocuments(job))
            )
        if job.lines:
            lines = (
                {"lines": parts[_LINES], "documents": documents}
                | "GatherLines" >> beam.CoGroupByKey()
                | "ShareOutLines" >> beam.ParDo(_ShareOutLines(job))
                | "GatherEqualLines" >> beam.GroupByKey()
                | "ChooseLines" >> beam.ParDo(_ChooseLines(job))
            )
        return (
            {"text": parts[_TEXT], "documents": documents, "lines": lines}
            | "GatherDecisions" >> beam.CoGroupByKey()
            | "DropFromBlocks" >> beam.ParDo(_DropFromBlock(job))
        )


def write_duplicates(folder: str, path: str | Path) -> int:
    """Puts the dropped documents that `DropDuplicates` listed into one file, a JSON object a line.

    Returns:
        How many there are; without any, no file is written.
    """
    files = read_shared_files(folder, _REPORT.format("*"), may_be_none=True)
    if files:
        with replacing_file(path) as aside:
            aside.write_bytes(b"".join(files))
    return sum(lines.count(b"\n") for lines in files)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Job:
    """What is to be dropped, and where things lie; travels to the workers."""

    documents: bool
    bands: tuple[int, int] | None
    threshold: float
    lines: bool
    store: BlobStore
    folder: str


def _find_near(parts: Any, job: _Job) -> beam.PCollection:
    """(share of the keys, reference to `Kept`): what stays for documents that are near others."""
    candidates = (
        parts[_BANDS]
        | "GatherBands" >> beam.GroupByKey()
        | "PairCandidates" >> beam.ParDo(_PairCandidates(job)).with_outputs(_KEYS, main=_PAIRS)
    )
    nodes = (
        {
            "occurrences": parts[_OCCURRENCES],
            "signatures": parts[_SIGNATURES],
            "wanted": candidates[_KEYS],
        }
        | "GatherSignatures" >> beam.CoGroupByKey()
        | "SelectCandidates" >> beam.ParDo(_SelectCandidates(job))
    )
    return (
        {"pairs": candidates[_PAIRS], "nodes": nodes}
        | "GatherCandidates" >> beam.CoGroupByKey()
        | "ConnectNear" >> beam.ParDo(_ConnectNear(job))
    )


def _shares_of(keys: np.ndarray) -> np.ndarray:
    return (keys >> np.uint64(40)) % np.uint64(_SHARES)


def _share_out(
    rows: np.ndarray, keys: np.ndarray, writer: BlobWriter
) -> list[tuple[int, BlobReference]]:
    """Stores the rows of each share of the keys that has any."""
    shares = _shares_of(keys)
    order = np.argsort(shares, kind="stable")
    rows = rows[order]
    borders = np.searchsorted(shares[order], np.arange(_SHARES + 1, dtype=np.uint64))
    return [
        (share, writer.add([rows[borders[share] : borders[share + 1]].tobytes()]))
        for share in range(_SHARES)
        if borders[share] < borders[share + 1]
    ]


class _StoreBlock(beam.DoFn):
    """Stores a block's text and the records of its documents and lines."""

    def __init__(self, job: _Job):
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
                outputs.append(Output(_LINES, (block_id, writer.add([rows.tobytes()]))))
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
        shares = _shares_of(rows["key"])
        for share in np.unique(shares):
            part = Occurrences([(block.source, block.index)], rows[shares == share])
            yield Output(_OCCURRENCES, (int(share), writer.add([part.to_bytes()])))

    def _signatures(
        self, folded: FoldedBlock, writer: BlobWriter, bands: tuple[int, int]
    ) -> Iterator[Output]:
        keys, documents = np.unique(folded.document_keys, return_index=True)
        has_words = np.diff(folded.document_offsets)[documents] > 0
        keys, documents = keys[has_words], documents[has_words]
        signatures = np.empty(len(keys), SIGNATURE)
        signatures["key"] = keys
        signatures["minima"] = signatures_of(folded.words, folded.document_offsets, documents)
        for part in _share_out(signatures, keys, writer):
            yield Output(_SIGNATURES, part)
        rows = np.empty(len(keys) * bands[0], BAND)
        rows["band"] = band_keys(signatures["minima"], *bands).reshape(-1)
        rows["key"] = np.repeat(keys, bands[0])
        for part in _share_out(rows, rows["band"], writer):
            yield Output(_BANDS, part)


def _read_rows(store: BlobStore, references: Iterable[BlobReference], kind: np.dtype) -> np.ndarray:
    return np.concatenate(
        [np.empty(0, kind), *(np.frombuffer(store.read(item), kind) for item in references)]
    )


class _PairCandidates(beam.DoFn):
    """Bands to pairs, and the keys in them to where the documents' records are."""

    def __init__(self, job: _Job):
        self._job = job

    def process(self, bands: tuple[int, Iterable[BlobReference]]) -> Iterator[Any]:
        store = self._job.store
        pairs = pair_candidates(_read_rows(store, bands[1], BAND))
        if not len(pairs):
            return
        keys = np.unique(np.concatenate([pairs["low"], pairs["high"]]))
        with store.writer() as writer:
            stored = writer.add([pairs.tobytes()])
            shares = _share_out(keys, keys, writer)
        yield _EVERYWHERE, stored
        for part in shares:
            yield Output(_KEYS, part)


class _SelectCandidates(beam.DoFn):
    """The records of the documents that are in pairs, to one place."""

    def __init__(self, job: _Job):
        self._job = job

    def process(
        self, share: tuple[int, dict[str, list[BlobReference]]]
    ) -> Iterator[tuple[int, BlobReference]]:
        store, parts = self._job.store, share[1]
        wanted = np.unique(_read_rows(store, parts["wanted"], np.dtype("u8")))
        if not len(wanted):
            return
        nodes = select_nodes(
            merge_occurrences(store.read(item) for item in parts["occurrences"]),
            _read_rows(store, parts["signatures"], SIGNATURE),
            wanted,
        )
        with store.writer() as writer:
            stored = writer.add([nodes.to_bytes()])
        yield _EVERYWHERE, stored


class _ConnectNear(beam.DoFn):
    """Compares all candidates and tells each share of the keys which of its documents go."""

    def __init__(self, job: _Job):
        self._job = job

    def process(
        self, candidates: tuple[int, dict[str, list[BlobReference]]]
    ) -> Iterator[tuple[int, BlobReference]]:
        store, parts = self._job.store, candidates[1]
        kept = choose_kept(
            merge_nodes(store.read(item) for item in parts["nodes"]),
            _read_rows(store, parts["pairs"], PAIR),
            self._job.threshold,
        )
        shares = _shares_of(kept.keys)
        with store.writer() as writer:
            stored = [
                (int(share), writer.add([kept.select(shares == share).to_bytes()]))
                for share in np.unique(shares)
            ]
        yield from stored


class _ChooseDocuments(beam.DoFn):
    """Decides on the documents of a share of the keys, lists them and tells their blocks."""

    def __init__(self, job: _Job):
        self._job = job

    def process(
        self, share: tuple[int, dict[str, list[BlobReference]]]
    ) -> Iterator[tuple[BlockId, DocumentsToDrop]]:
        number, parts = share
        store = self._job.store
        occurrences = merge_occurrences(store.read(item) for item in parts["occurrences"])
        dropped = choose_dropped(
            occurrences, merge_kept(store.read(item) for item in parts["kept"])
        )
        if not len(dropped.rows):
            return
        write_shared_file(
            self._job.folder,
            _REPORT.format(f"{number:05d}"),
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


class _ShareOutLines(beam.DoFn):
    """The lines of a block's documents that stay, by shares of their keys."""

    def __init__(self, job: _Job):
        self._job = job

    def process(
        self, block: tuple[BlockId, dict[str, list[Any]]]
    ) -> Iterator[tuple[int, tuple[BlockId, BlobReference]]]:
        block_id, parts = block
        store = self._job.store
        rows = _read_rows(store, parts["lines"], LINE)
        for documents, _ in parts["documents"]:
            rows = rows[~np.isin(rows["document"], documents)]
        with store.writer() as writer:
            stored = _share_out(rows, rows["key"], writer)
        for share, reference in stored:
            yield share, (block_id, reference)


class _ChooseLines(beam.DoFn):
    """Tells blocks which of their lines are repeated."""

    def __init__(self, job: _Job):
        self._job = job

    def process(
        self, share: tuple[int, Iterable[tuple[BlockId, BlobReference]]]
    ) -> Iterator[tuple[BlockId, np.ndarray]]:
        store = self._job.store
        yield from find_repeated((block_id, store.read(item)) for block_id, item in share[1])


class _DropFromBlock(beam.DoFn):
    """Reads a block again and drops what is to be dropped."""

    def __init__(self, job: _Job):
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
