"""Evidence on a corpus: documents that were dropped, samples of what each rule drops, tallies."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

MOST_SAMPLES = 20  # of a rule
SAMPLE_CHARACTERS = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Dropped:
    """A document that a rule dropped; `value` is what the rule measured, None without a number."""

    source: str  # file of the document
    line: int  # where it begins there, from 1 (Parquet: the row)
    rule: str
    value: float | None = None

    def json_line(self) -> bytes:
        entry = {"source": self.source, "line": self.line, "rule": self.rule}
        if self.value is not None:
            entry["value"] = rounded(self.value)
        line = json.dumps(entry, ensure_ascii=False)
        return line.encode("utf-8", "backslashreplace") + b"\n"


class Sample(NamedTuple):
    """The beginning of a document or line that a rule dropped; a hash of its text chooses it."""

    hash: int
    source: str
    line: int
    value: float
    text: str


Samples = Mapping[str, Sequence[Sample]]
"""By the name of the rule."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    dropped: Sequence[Dropped] = ()  # all but copies, which have their own list
    samples: Samples = dataclasses.field(default_factory=dict)
    # Numbers of documents by what is known of them: `language/en`, `domain/example.com`.
    tallies: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def with_dropped(
        self, source: str, lines: np.ndarray, rule: str, values: np.ndarray | None = None
    ) -> Evidence:
        """Adds documents by the lines where they begin, int64 [documents]."""
        if not len(lines):
            return self
        numbers = [None] * len(lines) if values is None else values.tolist()
        found = (Dropped(source, *each) for each in _rows(lines, rule, numbers))
        return dataclasses.replace(self, dropped=[*self.dropped, *found])


def _rows(lines: np.ndarray, rule: str, numbers: list) -> Iterator[tuple[int, str, float | None]]:
    return ((line, rule, value) for line, value in zip(lines.tolist(), numbers, strict=True))


def join_evidence(parts: Iterable[Evidence]) -> Evidence:
    parts = list(parts)
    tallies: Counter[str] = Counter()
    for part in parts:
        tallies.update(part.tallies)
    return Evidence(
        dropped=[each for part in parts for each in part.dropped],
        samples=merge_samples(part.samples for part in parts),
        tallies=tallies,
    )


def merge_samples(parts: Iterable[Samples]) -> dict[str, list[Sample]]:
    """Keeps the samples with the smallest hashes, one of equal texts: in any order the same."""
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


def rounded(value: float) -> float:
    return float(f"{value:.6g}")
