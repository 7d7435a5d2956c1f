"""Curation rules: bounds of measurements, within which documents and lines stay."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from bert_tf.data.tables.rejects import Reject
from pipeline.corpus.curation.measures import MeasuredText
from pipeline.corpus.curation.personal_data import PersonalData
from pipeline.corpus.evidence import (
    LINES_READ,
    MOST_SAMPLES,
    SAMPLE_CHARACTERS,
    Evidence,
    Sample,
    join_evidence,
    rounded,
)
from pipeline.corpus.lines import CleanLines

_STAYS = -1


@dataclasses.dataclass(frozen=True)
class Rule:
    """Drops text whose measurement is below the minimum or above the maximum.

    `measure` is a pure function of the arrays of a block: a number for each document, or line if
    `of_lines`. NaN, of text that the rule cannot judge, keeps it.
    """

    name: str  # in the config, and the reason in all counts
    measure: Callable[[MeasuredText], np.ndarray]
    _: dataclasses.KW_ONLY
    paper: str
    groups: tuple[str, ...] = ()  # names in the config that turn on several rules
    minimum: float | None = None  # exactly one of the two is given
    maximum: float | None = None
    highest: float = 1.0  # thresholds are from 0 to this
    of_lines: bool = False
    keeps_feeds: bool = False  # between lines; C4's rules leave one each
    # Documents are counted by language, if it has this probability.
    counts_from: float | None = None
    setting: str = ""  # of the config, unless it is an entry of `curation`

    @property
    def threshold(self) -> float:
        threshold = self.maximum if self.minimum is None else self.minimum
        assert threshold is not None, f"{self.name} has no threshold"
        return threshold

    def __str__(self) -> str:
        return f"{self.name}={self.threshold:g}"

    @property
    def set_by(self) -> str:
        return self.setting or f"curation: {self}"

    def with_threshold(self, threshold: float) -> Rule:
        if self.minimum is None:
            return dataclasses.replace(self, maximum=threshold)
        return dataclasses.replace(self, minimum=threshold)

    def drops(self, values: np.ndarray) -> np.ndarray:
        return values > self.threshold if self.minimum is None else values < self.threshold


_GOPHER = "Rae et al. 2021 (arXiv:2112.11446), A.1.1"
gopher_quality = partial(Rule, paper=_GOPHER, groups=("gopher", "gopher_quality"))
gopher_repetition = partial(Rule, paper=_GOPHER, groups=("gopher", "gopher_repetition"))
c4 = partial(Rule, paper="Raffel et al. 2020 (arXiv:1910.10683), 2.2", groups=("c4",))
fineweb = partial(Rule, paper="Penedo et al. 2024 (arXiv:2406.17557), 3.6", groups=("fineweb",))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentLines:
    """Clean lines of documents; `rejects`, `dropped` and `dropped_lines` as in `DocumentBlock`."""

    clean: CleanLines  # the lines; those left out are empty
    line_documents: np.ndarray  # int64 [lines], not falling: the document of each line
    document_lines: np.ndarray  # int64 [documents]: where each begins in the file
    rejects: list[Reject]
    dropped: dict[str, int] = dataclasses.field(default_factory=dict)
    dropped_lines: dict[str, int] = dataclasses.field(default_factory=dict)
    evidence: Evidence = dataclasses.field(default_factory=Evidence)

    def measured(self) -> tuple[MeasuredText, np.ndarray]:
        return MeasuredText.of_lines(self.clean, self.line_documents, len(self.document_lines))


@dataclasses.dataclass(frozen=True)
class Verdicts:
    """The number of the first rule that drops each item (int64), -1 for what stays; its values."""

    rules: np.ndarray
    values: np.ndarray  # float64

    @classmethod
    def of(cls, number: int) -> Verdicts:
        return cls(np.full(number, _STAYS), np.full(number, np.nan))

    def counts(self, rules: Sequence[Rule]) -> dict[str, int]:
        counts = np.bincount(self.rules[self.rules != _STAYS], minlength=len(rules))
        return {rule.name: int(count) for rule, count in zip(rules, counts, strict=True) if count}

    def drop(self, items: np.ndarray, rule: int, values: np.ndarray) -> None:
        self.rules[items], self.values[items] = rule, values


def judge(text: MeasuredText, rules: Iterable[Rule]) -> tuple[Verdicts, Verdicts]:
    """Judges documents and lines.

    Each rule sees the lines that earlier ones left. Documents without lines are not judged, and
    lines of documents that go are not dropped by themselves.
    """
    documents, lines = Verdicts.of(text.num_documents), Verdicts.of(len(text.starts))
    line_documents = text.documents
    has_text = text.num_lines > 0
    numbers = np.arange(len(line_documents))  # of the lines that are left
    for number, rule in enumerate(rules):
        values = rule.measure(text)
        is_dropped = rule.drops(values)
        if rule.of_lines:
            lines.drop(numbers[is_dropped], number, values[is_dropped])
            numbers = numbers[~is_dropped]
            text = text.select(~is_dropped, keeps_feeds=rule.keeps_feeds)
        else:
            is_dropped &= has_text & (documents.rules == _STAYS)
            documents.drop(is_dropped, number, values[is_dropped])
    lines.rules[documents.rules[line_documents] != _STAYS] = _STAYS
    return documents, lines


def curate(
    source: str, lines: DocumentLines, rules: Sequence[Rule], personal_data: PersonalData
) -> DocumentLines:
    """Leaves out documents and lines of a file; samples are without personal data."""
    text, numbers = lines.measured()
    verdicts = documents, of_lines = judge(text, rules)
    evidence = gather_evidence(text, verdicts, rules, source, lines.document_lines, personal_data)
    goes = np.zeros(len(lines.line_documents), np.bool_)
    goes[numbers[of_lines.rules != _STAYS]] = True
    stays = documents.rules == _STAYS
    kept = np.flatnonzero(stays[lines.line_documents])
    return dataclasses.replace(
        lines,
        clean=lines.clean.without(goes).select(kept),
        line_documents=(np.cumsum(stays) - 1)[lines.line_documents[kept]],
        document_lines=lines.document_lines[stays],
        dropped={**lines.dropped, **documents.counts(rules)},
        dropped_lines={**lines.dropped_lines, **of_lines.counts(rules)},
        evidence=join_evidence([lines.evidence, evidence]),
    )


def gather_evidence(
    text: MeasuredText,
    verdicts: tuple[Verdicts, Verdicts],
    rules: Sequence[Rule],
    source: str,
    document_lines: np.ndarray,
    personal_data: PersonalData,
) -> Evidence:
    """Lists dropped documents; samples are the texts with the smallest hashes, equal ones once."""
    evidence = Evidence()
    samples: dict[str, list[Sample]] = {}
    tallies = {LINES_READ: len(text.starts)}
    for number, rule in enumerate(rules):
        if rule.counts_from is not None:
            found = text.document_languages.named(rule.counts_from)[text.num_lines > 0]
            names, counts = (each.tolist() for each in np.unique(found, return_counts=True))
            tallies |= {f"language/{name}": n for name, n in zip(names, counts, strict=True)}
        judged = verdicts[rule.of_lines]
        items = np.flatnonzero(judged.rules == number)
        if not len(items):
            continue
        values = judged.values[items]
        begins, ends = items, items + 1
        if not rule.of_lines:
            evidence = evidence.with_dropped(source, document_lines[items], rule.name, values)
            begins, ends = text.document_bounds[items], text.document_bounds[items + 1]
        hashes, firsts = np.unique(text.hashes(begins, ends), return_index=True)
        samples[rule.name] = [
            Sample(
                hash_of_text,
                source,
                int(document_lines[text.documents[begins[place]]]),
                rounded(values[place]),
                text.shown(
                    begins[place], ends[place], most=SAMPLE_CHARACTERS, personal_data=personal_data
                ),
            )
            for hash_of_text, place in zip(hashes[:MOST_SAMPLES].tolist(), firsts, strict=False)
        ]
    return dataclasses.replace(evidence, samples=samples, tallies=tallies)
