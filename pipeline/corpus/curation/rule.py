"""Curation rules: bounds of measurements, within which documents and lines stay."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText
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

    @property
    def threshold(self) -> float:
        threshold = self.maximum if self.minimum is None else self.minimum
        assert threshold is not None, f"{self.name} has no threshold"
        return threshold

    def __str__(self) -> str:
        return f"{self.name}={self.threshold:g}"

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


@dataclasses.dataclass(frozen=True)
class Curated:
    """Lines of the remaining documents, dropped ones empty; counts by rule."""

    clean: CleanLines
    line_documents: np.ndarray  # int64 [lines]
    stays: np.ndarray  # bool [documents before]
    dropped: dict[str, int]
    dropped_lines: dict[str, int]


def judge(text: MeasuredText, rules: Iterable[Rule]) -> tuple[np.ndarray, np.ndarray]:
    """The number of the first rule that drops each document and line (int64), -1 for what stays.

    Each rule sees the lines that earlier ones left. Documents without lines are not judged, and
    lines of documents that go are not dropped by themselves.
    """
    documents = np.full(text.num_documents, _STAYS)
    lines = np.full(len(text.starts), _STAYS)
    line_documents = text.documents
    has_text = text.num_lines > 0
    numbers = np.arange(len(lines))  # of the lines that are left
    for number, rule in enumerate(rules):
        is_dropped = rule.drops(rule.measure(text))
        if rule.of_lines:
            lines[numbers[is_dropped]] = number
            numbers, text = numbers[~is_dropped], text.select(~is_dropped)
        else:
            documents[is_dropped & has_text & (documents == _STAYS)] = number
    lines[documents[line_documents] != _STAYS] = _STAYS
    return documents, lines


def _count(numbers: np.ndarray, rules: Sequence[Rule]) -> dict[str, int]:
    counts = np.bincount(numbers[numbers != _STAYS], minlength=len(rules))
    return {rule.name: int(count) for rule, count in zip(rules, counts, strict=True) if count}


def curate(
    clean: CleanLines, line_documents: np.ndarray, num_documents: int, rules: Sequence[Rule]
) -> Curated:
    text, numbers = MeasuredText.of_lines(clean, line_documents, num_documents)
    documents, lines = judge(text, rules)
    goes = np.zeros(len(line_documents), np.bool_)
    goes[numbers[lines != _STAYS]] = True
    clean = clean.without(goes)
    stays = documents == _STAYS
    if not stays.all():
        kept = np.flatnonzero(stays[line_documents])
        clean, line_documents = clean.select(kept), (np.cumsum(stays) - 1)[line_documents[kept]]
    return Curated(clean, line_documents, stays, _count(documents, rules), _count(lines, rules))
