"""Curation rules: bounds of measurements, within which documents and lines stay.

A rule is a measurement, a threshold and the paper that chose it, in a file of `rules/`. Thresholds
are those of the papers; only a config changes them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from pipeline.corpus.curation.measures import DocumentLines, MeasuredText
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


@dataclasses.dataclass(frozen=True)
class Rule:
    """Drops text whose measurement is below the minimum or above the maximum.

    Attributes:
        name: in the config, and the reason in all counts.
        measure: a pure function of the arrays of a block: a number for each document, or line if
            `of_lines`. NaN, of text that the rule cannot judge, keeps it.
        paper: that chose the threshold.
        groups: names in the config that turn on several rules.
        minimum, maximum: exactly one of the two is given.
        highest: thresholds are from 0 to this.
        keeps_feeds: whether the line feeds between lines stay; C4's rules leave one each.
        counts_from: probability from which documents are counted by language; None to count none.
        setting: key of the config, unless the rule is an entry of `curation`.
    """

    name: str
    measure: Callable[[MeasuredText], np.ndarray]
    _: dataclasses.KW_ONLY
    paper: str
    groups: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    highest: float = 1.0
    of_lines: bool = False
    keeps_feeds: bool = False
    counts_from: float | None = None
    setting: str = ""

    @property
    def threshold(self) -> float:
        threshold = self.maximum if self.minimum is None else self.minimum
        assert threshold is not None  # one of the two is set
        return threshold

    @property
    def set_by(self) -> str:
        return self.setting or f"curation: {self.name}={self.threshold:g}"

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


class Verdict(NamedTuple):
    """Texts that a rule drops.

    Attributes:
        items: int64 [items], numbers of documents or lines.
        values: float64 [items], their measurements.
    """

    rule: Rule
    items: np.ndarray
    values: np.ndarray


def judge(text: MeasuredText, rules: Iterable[Rule]) -> list[Verdict]:
    """Judge documents and lines by each rule in turn.

    Each rule sees the lines that earlier ones left. Documents without lines are not judged. Lines
    of dropped documents are not listed by themselves.

    Args:
        text: the documents.
        rules: in the order of the registry.

    Returns:
        A verdict for each rule.
    """
    verdicts: list[Verdict] = []
    line_documents = text.documents
    stays = text.num_lines > 0
    numbers = np.arange(len(line_documents))  # of the lines that are left
    for rule in rules:
        values = rule.measure(text)
        is_dropped = rule.drops(values)
        if rule.of_lines:
            items, numbers = numbers[is_dropped], numbers[~is_dropped]
            text = text.select(~is_dropped, keeps_feeds=rule.keeps_feeds)
        else:
            is_dropped &= stays
            stays &= ~is_dropped
            items = np.flatnonzero(is_dropped)
        verdicts.append(Verdict(rule, items, values[is_dropped]))
    for place, (rule, items, values) in enumerate(verdicts):
        if rule.of_lines:
            kept = stays[line_documents[items]]
            verdicts[place] = Verdict(rule, items[kept], values[kept])
    return verdicts


def curate(
    source: str, lines: DocumentLines, rules: Sequence[Rule], personal_data: PersonalData
) -> DocumentLines:
    """Leave out documents and lines of a file.

    Args:
        source: the file.
        lines: its documents.
        rules: in the order of the registry.
        personal_data: kinds to replace in samples.
    """
    text, numbers = lines.measured
    is_dropped = np.zeros(len(lines.line_documents), np.bool_)
    stays = np.ones(len(lines.document_lines), np.bool_)
    evidence = [lines.evidence, Evidence(tallies={LINES_READ: len(text.starts)})]
    for verdict in judge(text, rules):
        if verdict.rule.of_lines:
            is_dropped[numbers[verdict.items]] = True
        else:
            stays[verdict.items] = False
        evidence.append(_evidence_of(text, verdict, source, lines.document_lines, personal_data))
    kept = np.flatnonzero(stays[lines.line_documents])
    return DocumentLines(
        clean=lines.clean.without(is_dropped).select(kept),
        line_documents=(np.cumsum(stays) - 1)[lines.line_documents[kept]],
        document_lines=lines.document_lines[stays],
        evidence=join_evidence(evidence),
    )


def _evidence_of(
    text: MeasuredText,
    verdict: Verdict,
    source: str,
    document_lines: np.ndarray,
    personal_data: PersonalData,
) -> Evidence:
    """List the documents or count the lines that a rule drops, with samples of their text.

    Samples are the texts with the smallest hashes, so that workers choose the same ones; equal
    texts are shown once.
    """
    rule, items, values = verdict
    tallies: Counter[str] = Counter()
    if rule.counts_from is not None:
        names = text.document_languages.named(rule.counts_from)[text.num_lines > 0]
        tallies.update(f"language/{name}" for name in names.tolist())
    if not len(items):
        return Evidence(tallies=tallies)
    if rule.of_lines:
        evidence = Evidence(dropped_lines={rule.name: len(items)})
        begins, ends = items, items + 1
    else:
        evidence = Evidence.of_dropped(source, document_lines[items], rule.name, values)
        begins, ends = text.document_bounds[items], text.document_bounds[items + 1]
    hashes, firsts = np.unique(text.hashes(begins, ends), return_index=True)
    samples = [
        Sample(
            hash_of_text,
            source,
            int(document_lines[text.documents[begins[place]]]),
            rounded(values[place]),
            text.shown(begins[place], ends[place], SAMPLE_CHARACTERS, personal_data),
        )
        for hash_of_text, place in zip(hashes[:MOST_SAMPLES].tolist(), firsts, strict=False)
    ]
    return dataclasses.replace(evidence, samples={rule.name: samples}, tallies=tallies)
