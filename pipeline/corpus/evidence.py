"""Evidence on a corpus: rejected, dropped and replaced texts, with counts and samples by rule.

Tallies count documents by language, domain and license.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.rejects import Reject, json_line

MOST_SAMPLES = 20  # of a rule
SAMPLE_CHARACTERS = 200
MOST_NAMES = 100  # of a kind of tally
# Tallies without names: all documents, and the lines that rules judge.
DOCUMENTS_READ = "documents"
LINES_READ = "lines"
_NAME_CHARACTERS = 100
# Columns of rows that are counted if a file has them, and the kind of tally.
TALLIED = {"url": "domain", "license": "license"}
_HOST = r"^[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^/:?#]+)"


@dataclasses.dataclass(frozen=True, slots=True)
class Dropped:
    """A document that a rule dropped."""

    source: str  # file of the document
    line: int  # where it begins there, from 1 (Parquet: the row)
    rule: str
    value: float | None = None  # measured by the rule; None if it measures nothing

    def json_line(self) -> bytes:
        entry = {"source": self.source, "line": self.line, "rule": self.rule}
        if self.value is not None:
            entry["value"] = rounded(self.value)
        return json_line(entry)


@dataclasses.dataclass(frozen=True, slots=True)
class SharedText:
    """Words of a document that a text to exclude also has."""

    source: str  # file of the document
    line: int  # where the document begins
    identity: str  # hash of the document's text
    words: int
    text: str  # the beginning of these words
    exclude: str  # file of the excluded text
    exclude_line: int

    def json_line(self) -> bytes:
        return json_line(dataclasses.asdict(self))


class Sample(NamedTuple):
    """The beginning of a document or line that a rule dropped; a hash of its text chooses it."""

    hash: int
    source: str
    line: int
    value: float
    text: str


Samples = Mapping[str, Sequence[Sample]]  # by the name of the rule


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """Counts and samples of texts left out of a block, and facts on those kept.

    Attributes:
        rejects: unreadable texts, with the line in the uncompressed file.
        dropped: numbers of documents left out on purpose, by reason.
        dropped_lines: the same of lines of any document.
        replaced: numbers of replaced personal data, by kind.
        documents: all dropped documents except copies, which have their own list.
        samples: a few texts of each reason.
        shared: texts that are also in files to exclude.
        tallies: numbers of documents by kind and name: `language/en`, `domain/example.com`.
    """

    rejects: Sequence[Reject] = ()
    dropped: Mapping[str, int] = dataclasses.field(default_factory=dict)
    dropped_lines: Mapping[str, int] = dataclasses.field(default_factory=dict)
    replaced: Mapping[str, int] = dataclasses.field(default_factory=dict)
    documents: Sequence[Dropped] = ()
    samples: Samples = dataclasses.field(default_factory=dict)
    shared: Sequence[SharedText] = ()
    tallies: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def of_dropped(
        cls, source: str, lines: np.ndarray, rule: str, values: np.ndarray | None = None
    ) -> Evidence:
        """Make the evidence of documents that one rule dropped.

        Args:
            source: their file.
            lines: int64 [documents], the lines where they begin.
            rule: name of the rule.
            values: float [documents], measured by the rule; None if it measures nothing.
        """
        numbers = [None] * len(lines) if values is None else values.tolist()
        rows = zip(lines.tolist(), numbers, strict=True)
        documents = [Dropped(source, line, rule, value) for line, value in rows]
        return cls(dropped={rule: len(documents)}, documents=documents)

    def __add__(self, other: Evidence) -> Evidence:
        return join_evidence([self, other])


def join_evidence(parts: Iterable[Evidence]) -> Evidence:
    """Join the evidence of parts in their order: lists one after the other, counts added up."""
    parts = list(parts)
    counts = {
        name: +sum_counts(getattr(part, name) for part in parts)  # without those of 0
        for name in ("dropped", "dropped_lines", "replaced", "tallies")
    }
    return Evidence(
        rejects=[reject for part in parts for reject in part.rejects],
        documents=[document for part in parts for document in part.documents],
        samples=merge_samples(part.samples for part in parts),
        shared=[shared for part in parts for shared in part.shared],
        **counts,
    )


def sum_counts(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Add up counts by name. Names that count 0 stay; unary plus on the result drops them."""
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return total


def merge_samples(parts: Iterable[Samples]) -> dict[str, list[Sample]]:
    """Keep the samples with the smallest hashes, one of equal texts.

    The result does not depend on the order of the parts.
    """
    gathered: dict[str, list[Sample]] = {}
    for part in parts:
        for rule, samples in part.items():
            gathered.setdefault(rule, []).extend(samples)
    merged = {}
    for rule, samples in gathered.items():
        distinct: dict[int, Sample] = {}
        for sample in sorted(samples):
            distinct.setdefault(sample.hash, sample)
        merged[rule] = list(distinct.values())[:MOST_SAMPLES]
    return merged


def tallied_columns(columns: Iterable[str], config: CorpusSection) -> tuple[str, ...]:
    """Return the columns of a file that `tally_columns` counts."""
    return tuple(name for name in columns if name in TALLIED and name != config.text_column)


def tally_columns(columns: Mapping[str, pa.Array]) -> dict[str, int]:
    """Count documents by the domain of their `url` and by their `license`.

    Args:
        columns: cells by column, some of `TALLIED`.
    """
    tallies: Counter[str] = Counter()
    for column, cells in columns.items():
        values = cells.cast(pa.large_binary())
        if column == "url":
            values = pc.struct_field(pc.extract_regex(values, _HOST), 0)
        for entry in pc.value_counts(values.drop_null()).to_pylist():
            name = entry["values"].decode("utf-8", "replace").strip()[:_NAME_CHARACTERS]
            if name:
                tallies[f"{TALLIED[column]}/{name.lower()}"] += entry["counts"]
    return tallies


def most_frequent(tallies: Mapping[str, int]) -> dict[str, int]:
    """Keep the most frequent names of each kind, and tallies without names."""
    kept: dict[str, int] = {}
    kinds: Counter[str] = Counter()
    for key, number in ranked(tallies).items():
        kind, slash, _ = key.partition("/")
        if slash:
            kinds[kind] += 1
        if not slash or kinds[kind] <= MOST_NAMES:
            kept[key] = number
    return kept


def ranked(counts: Mapping[str, int]) -> dict[str, int]:
    """Sort by number and name, so that the order in which workers counted does not matter."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def rounded(value: float) -> float:
    """Round to six digits, so that lists do not show the noise of float64."""
    return float(f"{value:.6g}")
