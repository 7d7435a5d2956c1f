"""The Beam transform that drops documents and lines that occur again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam

from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.blobs import BlobStore
from pipeline.beam.files import read_shared_files
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.duplicates import steps
from pipeline.corpus.duplicates.near_duplicates import choose_bands
from pipeline.corpus.duplicates.steps import BANDS, KEYS, OCCURRENCES, PAIRS, SIGNATURES, DropJob
from pipeline.corpus.report import write_lines


class DropDuplicates(beam.PTransform):
    """Drops documents and lines according to `CorpusSection.duplicates` and `duplicate_lines`.

    Only small records are shuffled, partitioned by hash, while blocks wait in `store`. The result
    depends on the documents only, not on files, blocks or workers.

        blocks ─┬─ text ────────────────────────────────────────────────────────────────┬─ blocks
                ├─ occurrences ─┬─────────────────────────────────┬─ documents to drop ─┤
                ├─ signatures ──┴─ candidates ── groups of near ones                    │
                ├─ bands ────────── pairs ┴                                             │
                └─ lines ── of the documents that stay ── lines to drop ────────────────┘
    """

    def __init__(self, config: CorpusSection, store: BlobStore, folder: str):
        super().__init__()
        self._job = DropJob(
            documents=config.duplicates != "keep",
            bands=choose_bands(config.near_duplicate_threshold)
            if config.duplicates == "near"
            else None,
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
        parts = blocks | "StoreBlocks" >> beam.FlatMap(steps.store_block, job).with_outputs(
            OCCURRENCES, SIGNATURES, BANDS, steps.LINES, main=steps.TEXT
        )
        nothing = blocks.pipeline | "Nothing" >> beam.Create([])
        documents = lines = nothing
        if job.documents:
            kept = _find_near(parts, job) if job.bands else nothing
            documents = (
                {"occurrences": parts[OCCURRENCES], "kept": kept}
                | "GatherEquals" >> beam.CoGroupByKey()
                | "ChooseDocuments" >> beam.FlatMap(steps.choose_documents, job)
            )
        if job.lines:
            lines = (
                {"lines": parts[steps.LINES], "documents": documents}
                | "GatherLines" >> beam.CoGroupByKey()
                | "PartitionLines" >> beam.FlatMap(steps.partition_lines, job)
                | "GatherEqualLines" >> beam.GroupByKey()
                | "ChooseLines" >> beam.FlatMap(steps.choose_lines, job)
            )
        return (
            {"text": parts[steps.TEXT], "documents": documents, "lines": lines}
            | "GatherDecisions" >> beam.CoGroupByKey()
            | "DropFromBlocks" >> beam.FlatMap(steps.drop_from_stored, job)
        )


def write_duplicates(folder: str, path: str | Path) -> int:
    """Writes a JSON object per dropped line and document, if any; returns their number."""
    files = read_shared_files(folder, steps.REPORT_NAME.format("*"), may_be_none=True)
    return write_lines(files, path)


def _find_near(parts: Any, job: DropJob) -> beam.PCollection:
    """(partition of the keys, reference to `Kept`) pairs."""
    candidates = (
        parts[BANDS]
        | "GatherBands" >> beam.GroupByKey()
        | "PairCandidates" >> beam.FlatMap(steps.pair_in_bands, job).with_outputs(KEYS, main=PAIRS)
    )
    nodes = (
        {
            "occurrences": parts[OCCURRENCES],
            "signatures": parts[SIGNATURES],
            "keys": candidates[KEYS],
        }
        | "GatherSignatures" >> beam.CoGroupByKey()
        | "SelectCandidates" >> beam.FlatMap(steps.select_candidates, job)
    )
    return (
        {"pairs": candidates[PAIRS], "nodes": nodes}
        | "GatherCandidates" >> beam.CoGroupByKey()
        | "ConnectNear" >> beam.FlatMap(steps.connect_near, job)
    )
