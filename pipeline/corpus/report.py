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
from pipeline.corpus.document_block import DocumentBlock, document_hashes
from pipeline.corpus.evidence import (
    Dropped,
    Sample,
    Samples,
    SharedText,
    merge_samples,
    most_frequent,
    sum_counts,
)
from pipeline.outputs.manifest import dropped_path, duplicates_path, excluded_path, rejects_path

_SUMMARY = "corpus-summary.json"
# Shares of hashes and names, each in one worker's memory.
_SHARES = "corpus-share"
_NUM_SHARES = 16
REJECTS = "corpus-rejects"
DROPPED = "corpus-dropped"
SHARED = "corpus-shared"
DUPLICATES = "corpus-duplicates"  # in numbered parts, which stay in their order
_LISTS = {
    REJECTS: rejects_path,
    DROPPED: dropped_path,
    SHARED: excluded_path,
    DUPLICATES: duplicates_path,
}
_LINES_OF_PART = 1 << 20  # of a file, at most: a part of a list is in the memory of one worker

# A part of a list, by its name, a file and its part; the first line there, and JSON lines.
Listed = tuple[tuple[str, str, int], tuple[int, bytes]]


@dataclasses.dataclass
class CorpusReport:
    """Counts of a corpus, or of a block of it.

    Attributes:
        documents, sentences, bytes: kept; bytes of their text in UTF-8.
        copies: documents kept that equal another one, to the letter.
        dropped: documents left out on purpose, by reason.
        dropped_lines: the same of lines.
        replaced: personal data, by kind.
        rejected: documents that could not be read, by reason.
        excluded: documents that share text with a file of `exclude`, by file.
    """

    documents: int = 0
    sentences: int = 0
    bytes: int = 0
    copies: int = 0
    dropped: Counter[str] = dataclasses.field(default_factory=Counter)
    dropped_lines: Counter[str] = dataclasses.field(default_factory=Counter)
    replaced: Counter[str] = dataclasses.field(default_factory=Counter)
    rejected: Counter[str] = dataclasses.field(default_factory=Counter)
    excluded: Counter[str] = dataclasses.field(default_factory=Counter)

    def counts(self) -> dict[str, Any]:
        return {
            name: dict(sorted(value.items())) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
            if name != "bytes" and (name != "excluded" or value)
        }


@dataclasses.dataclass(frozen=True)
class BlockFacts:
    """Facts on a block for the report of a corpus.

    Attributes:
        report: its counts, except copies.
        lists: entries of the lists of rejected and dropped texts.
        samples: a few texts of each reason.
        tallies: numbers of documents by kind and name.
        hashes: uint64 [documents], of their texts, by which copies are counted.
    """

    report: CorpusReport
    lists: list[Listed]
    samples: Samples
    tallies: Mapping[str, int]
    hashes: np.ndarray


def facts_of_block(block: DocumentBlock) -> BlockFacts:
    """Count the texts of a block, and those left out."""
    evidence = block.evidence
    # A document may share several texts with a file.
    sharing = {
        (shared.source, shared.line, shared.identity, shared.exclude) for shared in evidence.shared
    }
    report = CorpusReport(
        documents=block.num_documents,
        sentences=len(block.sentences),
        bytes=block.num_bytes,
        dropped=Counter(evidence.dropped),
        dropped_lines=Counter(evidence.dropped_lines),
        replaced=Counter(evidence.replaced),
        rejected=Counter(reject.reason for reject in evidence.rejects),
        excluded=Counter(file for *_, file in sharing),
    )
    lists = [*_list_parts(REJECTS, evidence.rejects), *_list_parts(DROPPED, evidence.documents)]
    lists += _list_parts(SHARED, evidence.shared)
    hashes = document_hashes(block)
    return BlockFacts(report, lists, evidence.samples, evidence.tallies, hashes)


def read_facts(data: bytes) -> BlockFacts:
    """Read facts from the bytes that another stage of the pipeline packed."""
    facts: BlockFacts = unpack(data, BlockFacts, CorpusReport, Sample)
    return facts


def _list_parts(name: str, items: Iterable[Reject | Dropped | SharedText]) -> Iterator[Listed]:
    """Yield the entries of a list by file and part of the file, in the order of their lines."""
    by_place = sorted(items, key=operator.attrgetter("source", "line"))
    parts = itertools.groupby(by_place, lambda item: (item.source, item.line // _LINES_OF_PART))
    for (source, part), members in parts:
        of_part = list(members)
        text = b"".join(item.json_line() for item in of_part)
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
            | "ShareFacts" >> beam.FlatMap(_shares_of_block)
            | "GatherShares" >> beam.GroupByKey()
            | "WriteShares" >> beam.MapTuple(functools.partial(_write_share, folder=self._folder))
        )
        return (
            facts
            | "TakeSummary" >> beam.Map(lambda facts: (vars(facts.report), facts.samples))
            | "AddUp" >> beam.CombineGlobally(_add_up)
            | "WriteSummary" >> beam.Map(write_shared_json, self._folder, _SUMMARY)
        )


def report_corpus_lines(report: CorpusReport, duplicates: str) -> Iterator[str]:
    """Report omissions, and copies that `--duplicates` could drop, as lines for the user."""
    for title, reasons in (
        ("dropped", report.dropped),
        ("lines dropped", report.dropped_lines),
        ("personal data replaced", report.replaced),
    ):
        if reasons:
            yield f"{title}: {list_reasons(reasons)}"
    if report.excluded:
        yield f"documents that share text with --exclude: {list_reasons(report.excluded)}"
    if report.copies and duplicates == "keep":
        yield (
            f"{report.copies:,} of {quantity(report.documents, 'document')} are exact copies of "
            "others (--duplicates exact keeps one of each)"
        )


def list_reasons(reasons: dict[str, int]) -> str:
    """Format counts by reason, such as `empty 3, too long 1`, or `none`."""
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items())) or "none"


def read_report(folder: str) -> CorpusReport:
    """Read the counts that `ReportCorpus` wrote; raise InputError if they are missing."""
    counts, _ = _read_summary(folder)
    reasons = {key: Counter(value) for key, value in counts.items() if isinstance(value, dict)}
    copies = sum(share["copies"] for share in _read_shares(folder))
    return CorpusReport(**counts | reasons | {"copies": copies})


def read_tallies(folder: str) -> dict[str, int]:
    """Return documents by kind and name; of each kind, the most frequent names."""
    return most_frequent(sum_counts(share["tallies"] for share in _read_shares(folder)))


def read_samples(folder: str) -> dict[str, list[Sample]]:
    """Read the samples of dropped texts in a corpus folder, by rule."""
    _, samples = _read_summary(folder)
    return {rule: [Sample(*row) for row in rows] for rule, rows in samples.items()}


def _read_summary(folder: str) -> list[dict[str, Any]]:
    (text,) = read_shared_files(folder, _SUMMARY)
    summary: list[dict[str, Any]] = json.loads(text)
    return summary


def _read_shares(folder: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, read_shared_files(folder, f"{_SHARES}-*", may_be_none=True))


def write_lists(folder: str, output: Path) -> dict[str, int]:
    """Write the lists of workers beside an output; remove empty ones; return their lengths."""
    return {name: _write_list(folder, name, place(output)) for name, place in _LISTS.items()}


def move_lists(folder: Path, output: Path) -> None:
    """Move lists from beside a folder to beside an output on the same storage."""
    for place in _LISTS.values():
        made = place(folder)
        target = place(output)
        if made.exists():
            made.replace(target)
        else:
            target.unlink(missing_ok=True)  # of an older output


def list_meanings(output: Path, *, duplicates: str, rejects: str) -> list[tuple[Path, str]]:
    """Return the paths of lists that may be beside an output, with their meaning for the user."""
    return [
        (duplicates_path(output), duplicates),
        (dropped_path(output), "dropped documents, with the rule of each"),
        (excluded_path(output), "text that documents share with --exclude"),
        (rejects_path(output), rejects),
    ]


def _write_list(folder: str, name: str, path: Path) -> int:
    """Write a list sorted by source and line, a part at a time."""
    parts = list(path_of(folder).glob(f"{name}-*.jsonl"))
    if not parts:
        path.unlink(missing_ok=True)  # of an older output
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


def _add_up(parts: Iterable[tuple[dict[str, Any], Samples]]) -> tuple[dict[str, Any], Samples]:
    total = vars(CorpusReport())
    parts = list(parts)
    for counts, _ in parts:
        total = {name: value + counts[name] for name, value in total.items()}
    return total, merge_samples(samples for _, samples in parts)


def _shares_of_block(facts: BlockFacts) -> Iterator[tuple[int, tuple[bytes, dict[str, int]]]]:
    """Yield the hashes and tallies of a block by share, each of which one worker adds up."""
    tallies: list[dict[str, int]] = [{} for _ in range(_NUM_SHARES)]
    for key, number in facts.tallies.items():
        tallies[zlib.crc32(key.encode()) % _NUM_SHARES][key] = number
    shares = facts.hashes % np.uint64(_NUM_SHARES)
    for share, tally in enumerate(tallies):
        yield share, (facts.hashes[shares == share].tobytes(), tally)


def _write_share(share: int, parts: Iterable[tuple[bytes, dict[str, int]]], *, folder: str) -> None:
    of_blocks, tallies = zip(*parts, strict=True)
    hashes = np.frombuffer(b"".join(of_blocks), np.uint64)
    lists = {
        "copies": len(hashes) - len(np.unique(hashes)),
        "tallies": most_frequent(sum_counts(tallies)),
    }
    write_shared_json(lists, folder, f"{_SHARES}-{share:02d}.json")
