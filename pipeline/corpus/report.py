"""Counts of documents read, dropped and rejected, by reason, and the list of rejects."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import operator
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np

from bert_tf.base.files import replacing_file
from bert_tf.base.wording import quantity
from bert_tf.data.tables.rejects import Reject
from pipeline.beam.files import read_shared_files, write_shared_file, write_shared_json
from pipeline.beam.packing import unpack
from pipeline.beam.stored_path import path_of
from pipeline.corpus.document_block import DocumentBlock, document_hashes, sum_counts
from pipeline.corpus.evidence import (
    Dropped,
    Sample,
    Samples,
    Shared,
    merge_samples,
    most_frequent,
)
from pipeline.outputs.manifest import dropped_path, duplicates_path, excluded_path, rejects_path

_SUMMARY = "corpus-summary.json"
_COPIES = "corpus-copies.txt"
_NUM_PARTITIONS = 16
REJECTS, DROPPED, SHARED = "corpus-rejects", "corpus-dropped", "corpus-shared"
DUPLICATES = "corpus-duplicates"  # in numbered parts, which stay in their order
_LISTS = {
    REJECTS: rejects_path,
    DROPPED: dropped_path,
    SHARED: excluded_path,
    DUPLICATES: duplicates_path,
}
_LINES_OF_PART = 1 << 20  # of a file, at most: a part of a list is in the memory of one worker
_SAMPLES, _TALLIES = "corpus-samples.json", "corpus-tallies"

# A part of a list, by its name, a file and its part; the first line there, and JSON lines.
Listed = tuple[tuple[str, str, int], tuple[int, bytes]]


@dataclasses.dataclass
class CorpusReport:
    # documents, sentences, bytes: kept, in UTF-8.
    documents: int = 0
    sentences: int = 0
    bytes: int = 0
    copies: int = 0  # documents kept that equal another one, to the letter
    # dropped, dropped_lines: left out on purpose, by reason.
    dropped: Counter[str] = dataclasses.field(default_factory=Counter)
    dropped_lines: Counter[str] = dataclasses.field(default_factory=Counter)
    replaced: Counter[str] = dataclasses.field(default_factory=Counter)  # personal data, by kind
    # Lines and rows that could not be read, by reason.
    rejected: Counter[str] = dataclasses.field(default_factory=Counter)
    # Documents that share text with a file of `exclude`, by file.
    excluded: Counter[str] = dataclasses.field(default_factory=Counter)

    def counts(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "sentences": self.sentences,
            "copies": self.copies,
            "dropped": dict(sorted(self.dropped.items())),
            "dropped_lines": dict(sorted(self.dropped_lines.items())),
            "replaced": dict(sorted(self.replaced.items())),
            "rejected": dict(sorted(self.rejected.items())),
            **self.counts_of_excluded(),
        }

    def counts_of_excluded(self) -> dict[str, Any]:
        return {"excluded": dict(sorted(self.excluded.items()))} if self.excluded else {}


@dataclasses.dataclass(frozen=True)
class BlockFacts:
    report: CorpusReport  # its counts, but for copies
    lists: list[Listed]
    samples: Samples
    tallies: Mapping[str, int]
    hashes: np.ndarray  # uint64 [documents], of their texts


def facts_of_block(block: DocumentBlock) -> BlockFacts:
    shared = block.evidence.shared
    sharing = {(each.source, each.line, each.identity, each.exclude) for each in shared}
    report = CorpusReport(
        documents=block.num_documents,
        sentences=len(block.sentences),
        bytes=block.num_bytes,
        dropped=Counter(block.dropped),
        dropped_lines=Counter(block.dropped_lines),
        replaced=Counter(block.replaced),
        rejected=Counter(reject.reason for reject in block.rejects),
        excluded=Counter(file for *_, file in sharing),
    )
    return BlockFacts(
        report,
        [
            *_list_parts(REJECTS, block.rejects),
            *_list_parts(DROPPED, block.evidence.dropped),
            *_list_parts(SHARED, shared),
        ],
        block.evidence.samples,
        block.evidence.tallies,
        document_hashes(block),
    )


def read_facts(data: bytes) -> BlockFacts:
    facts: BlockFacts = unpack(data, BlockFacts, CorpusReport, Sample)
    return facts


def _list_parts(name: str, items: Iterable[Reject | Dropped | Shared]) -> Iterator[Listed]:
    by_place = sorted(items, key=operator.attrgetter("source", "line"))
    parts = itertools.groupby(by_place, lambda item: (item.source, item.line // _LINES_OF_PART))
    for (source, part), found in parts:
        of_part = list(found)
        text = b"".join(each.json_line() for each in of_part)
        yield (name, source, part), (of_part[0].line, text)


class ReportCorpus(beam.PTransform):
    """Writes counts and rejects of all blocks to a shared folder, for `read_report`."""

    def __init__(self, folder: str):
        super().__init__()
        self._folder = folder

    def expand(self, facts: beam.PCollection[BlockFacts]) -> beam.PCollection[None]:
        _ = (
            facts
            | "TakeLists" >> beam.FlatMap(operator.attrgetter("lists"))
            | "GroupByPart" >> beam.GroupByKey()
            | "WriteParts" >> beam.MapTuple(functools.partial(_write_part, folder=self._folder))
        )
        _ = (
            facts
            | "TakeTallies" >> beam.FlatMap(_tallies_of_block)
            | "GatherTallies" >> beam.GroupByKey()
            | "WriteTallies" >> beam.MapTuple(functools.partial(_tally, folder=self._folder))
        )
        _ = (
            facts
            | "TakeSamples" >> beam.Map(operator.attrgetter("samples"))
            | "MergeSamples" >> beam.CombineGlobally(merge_samples)
            | "WriteSamples" >> beam.Map(write_shared_json, self._folder, _SAMPLES)
        )
        _ = (
            facts
            | "TakeHashes" >> beam.FlatMap(_hashes_of_block)
            | "GatherHashes" >> beam.GroupByKey()
            | "CountCopiesInShare" >> beam.MapTuple(_count_copies)
            | "AddUpCopies" >> beam.CombineGlobally(sum)
            | "WriteCopies" >> beam.Map(write_shared_json, self._folder, _COPIES)
        )
        return (
            facts
            | "TakeCounts" >> beam.Map(operator.attrgetter("report"))
            | "AddUp" >> beam.CombineGlobally(_add_up)
            | "ListCounts" >> beam.Map(lambda report: vars(report))
            | "WriteSummary" >> beam.Map(write_shared_json, self._folder, _SUMMARY)
        )


def report_corpus_lines(report: CorpusReport, duplicates: str) -> Iterator[str]:
    """Lines for the user on omissions, and on copies that `--duplicates` could drop."""
    for what, reasons in (
        ("dropped", report.dropped),
        ("lines dropped", report.dropped_lines),
        ("personal data replaced", report.replaced),
    ):
        if reasons:
            yield f"{what}: {list_reasons(reasons)}"
    if report.excluded:
        yield f"documents that share text with --exclude: {list_reasons(report.excluded)}"
    if report.copies and duplicates == "keep":
        yield (
            f"{report.copies:,} of {quantity(report.documents, 'document')} are exact copies of "
            "others (--duplicates exact keeps one of each)"
        )


def list_reasons(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items())) or "none"


def read_report(folder: str) -> CorpusReport:
    """Reads the counts that `ReportCorpus` wrote; raises InputError if they are missing."""
    (text,) = read_shared_files(folder, _SUMMARY)
    (copies,) = read_shared_files(folder, _COPIES)
    summary = json.loads(text)
    reasons = {key: Counter(value) for key, value in summary.items() if isinstance(value, dict)}
    return CorpusReport(**summary | reasons | {"copies": int(copies)})


def read_tallies(folder: str) -> dict[str, int]:
    """Documents by kind and name; of each kind, the most frequent names."""
    files = read_shared_files(folder, f"{_TALLIES}-*", may_be_none=True)
    return most_frequent(sum_counts(map(json.loads, files)))


def read_samples(folder: str) -> dict[str, list[Sample]]:
    (text,) = read_shared_files(folder, _SAMPLES)
    return {rule: [Sample(*each) for each in found] for rule, found in json.loads(text).items()}


def write_lists(folder: str, output: Path) -> dict[str, int]:
    """Writes the lists of workers beside an output, but for empty ones; returns their lengths."""
    return {name: _write_list(folder, name, place(output)) for name, place in _LISTS.items()}


def _write_list(folder: str, name: str, path: Path) -> int:
    """By source and line, a part at a time."""
    parts = list(path_of(folder).glob(f"{name}-*.jsonl"))
    if not parts:
        return 0
    parts.sort(key=operator.attrgetter("name") if name == DUPLICATES else _source_and_name)
    number = 0
    with replacing_file(path) as aside, aside.open("wb") as file:
        for part in parts:
            lines = part.read_bytes()
            file.write(lines)
            number += lines.count(b"\n")
    return number


def _source_and_name(part: Path) -> tuple[str, str]:
    with part.open("rb") as lines:
        return json.loads(lines.readline())["source"], part.name


def _write_part(
    key: tuple[str, str, int], texts: Iterable[tuple[int, bytes]], *, folder: str
) -> None:
    name, source, part = key
    place = f"{hashlib.sha256(source.encode()).hexdigest()[:32]}-{part:09d}"
    write_shared_file(folder, f"{name}-{place}.jsonl", b"".join(text for _, text in sorted(texts)))


def _add_up(reports: Iterable[CorpusReport]) -> CorpusReport:
    total = vars(CorpusReport())
    for report in reports:
        total = {name: value + getattr(report, name) for name, value in total.items()}
    return CorpusReport(**total)


def _hashes_of_block(facts: BlockFacts) -> Iterator[tuple[int, bytes]]:
    hashes = facts.hashes
    partitions = hashes % np.uint64(_NUM_PARTITIONS)
    for partition in np.unique(partitions):
        yield int(partition), hashes[partitions == partition].tobytes()


def _tallies_of_block(facts: BlockFacts) -> Iterator[tuple[int, dict[str, int]]]:
    shares: dict[int, dict[str, int]] = {}
    for key, number in facts.tallies.items():
        share = zlib.crc32(key.encode()) % _NUM_PARTITIONS
        shares.setdefault(share, {})[key] = number
    yield from shares.items()


def _tally(share: int, parts: Iterable[Mapping[str, int]], *, folder: str) -> None:
    write_shared_json(most_frequent(sum_counts(parts)), folder, f"{_TALLIES}-{share:02d}.json")


def _count_copies(partition: int, parts: Iterable[bytes]) -> int:
    del partition
    hashes = np.concatenate([np.frombuffer(part, np.uint64) for part in parts])
    return len(hashes) - len(np.unique(hashes))
