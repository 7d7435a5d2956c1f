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
from pipeline.corpus.document_block import DocumentBlock, document_hashes, sum_counts
from pipeline.corpus.evidence import (
    Dropped,
    Sample,
    Samples,
    Shared,
    merge_samples,
    most_frequent,
)

_SUMMARY = "corpus-summary.json"
_COPIES = "corpus-copies.txt"
_NUM_PARTITIONS = 16
_REJECTS, _DROPPED, _SHARED = "corpus-rejects", "corpus-dropped", "corpus-shared"
_SAMPLES, _TALLIES = "corpus-samples.json", "corpus-tallies"

# What was left out of a block of a file: the first line, and JSON lines.
Listed = tuple[int, bytes]


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
    # rejects, dropped, shared: of each of its files that has any, by path.
    rejects: dict[str, Listed]
    dropped: dict[str, Listed]
    shared: dict[str, Listed]
    samples: Samples
    tallies: Mapping[str, int]
    hashes: np.ndarray  # uint64 [documents], of their texts


def facts_of_block(block: DocumentBlock) -> BlockFacts:
    by_place = operator.attrgetter("source", "line")
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
        _by_file(block.rejects),
        _by_file(sorted(block.evidence.dropped, key=by_place)),
        _by_file(shared),
        block.evidence.samples,
        block.evidence.tallies,
        document_hashes(block),
    )


def read_facts(data: bytes) -> BlockFacts:
    facts: BlockFacts = unpack(data, BlockFacts, CorpusReport, Sample)
    return facts


def _by_file(items: Iterable[Reject | Dropped | Shared]) -> dict[str, Listed]:
    return {
        source: (of_file[0].line, b"".join(each.json_line() for each in of_file))
        for source, found in itertools.groupby(items, operator.attrgetter("source"))
        if (of_file := list(found))
    }


class ReportCorpus(beam.PTransform):
    """Writes counts and rejects of all blocks to a shared folder, for `read_report`."""

    def __init__(self, folder: str):
        super().__init__()
        self._folder = folder

    def expand(self, facts: beam.PCollection[BlockFacts]) -> beam.PCollection[None]:
        _ = (
            facts
            | "TakeLists" >> beam.FlatMap(_lists_of_block)
            | "GroupByFile" >> beam.GroupByKey()
            | "WriteLists" >> beam.MapTuple(functools.partial(_write_list, folder=self._folder))
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


def write_rejects(folder: str, path: str | Path) -> int:
    """Writes the rejects of `ReportCorpus`, if any, by source and line; returns their number."""
    return _gather_lists(folder, _REJECTS, path)


def write_dropped(folder: str, path: str | Path) -> int:
    """Writes the dropped documents as `write_rejects` does the rejects."""
    return _gather_lists(folder, _DROPPED, path)


def write_excluded(folder: str, path: str | Path) -> int:
    """Writes what documents share with files to exclude, likewise."""
    return _gather_lists(folder, _SHARED, path)


def _gather_lists(folder: str, name: str, path: str | Path) -> int:
    files = read_shared_files(folder, f"{name}-*.jsonl", may_be_none=True)
    files.sort(key=lambda lines: json.loads(lines.partition(b"\n")[0])["source"])
    return write_lines(files, path)


def write_lines(files: list[bytes], path: str | Path) -> int:
    if files:
        with replacing_file(path) as aside:
            aside.write_bytes(b"".join(files))
    return sum(lines.count(b"\n") for lines in files)


def _lists_of_block(facts: BlockFacts) -> Iterator[tuple[tuple[str, str], Listed]]:
    lists = ((_REJECTS, facts.rejects), (_DROPPED, facts.dropped), (_SHARED, facts.shared))
    for name, files in lists:
        for source, lines in files.items():
            yield (name, source), lines


def _write_list(key: tuple[str, str], parts: Iterable[Listed], *, folder: str) -> None:
    name, source = key
    place = hashlib.sha256(source.encode()).hexdigest()[:32]
    write_shared_file(folder, f"{name}-{place}.jsonl", b"".join(text for _, text in sorted(parts)))


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
