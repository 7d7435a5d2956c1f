"""Rows that could not be used: where they stand, why, and how many for each reason."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.atomic_files import replacing_file
from bert_tf.base.wording import quantity

_REASONS_SHOWN = 5
_DETAIL_CHARACTERS = 80
NOT_UTF8 = "not UTF-8 text"
TOO_LONG = "row is too long"
_REMEDIES = {
    NOT_UTF8: "if the file is in Latin-1, give --encoding latin-1",
    TOO_LONG: "correct the line ends of the file, or raise max_row_characters",
    "invalid UTF-8": "convert the file: iconv -f LATIN1 -t UTF-8",  # of a corpus
}


@dataclasses.dataclass(frozen=True, slots=True)
class Reject:
    """One row left out.

    Attributes:
        source: file the row stands in.
        line: its first line, counted from 1; 0 where the format has no lines of its own.
        reason: one of few constant texts, so that rejects can be counted by it.
        detail: what was found there, empty if the reason says it all.
    """

    source: str
    line: int
    reason: str
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The reject as a line of a rejects file."""
        entry: dict[str, Any] = {"source": self.source, "line": self.line, "reason": self.reason}
        if self.detail:
            entry["detail"] = self.detail
        return entry

    @property
    def place(self) -> str:
        """`file:line`, or the file alone."""
        return f"{self.source}:{self.line}" if self.line else self.source

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" + (f" ({self.detail})" if self.detail else "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReasonSummary:
    """The rows rejected for one reason.

    Attributes:
        reason: of all of them.
        count: how many there are.
        first: the first of them.
        remedy: what to do about it; empty where that depends on the rows.
    """

    reason: str
    count: int
    first: Reject
    remedy: str

    def __str__(self) -> str:
        detail = self.first.detail
        if len(detail) > _DETAIL_CHARACTERS:
            detail = detail[: _DETAIL_CHARACTERS - 1] + "…"
        found = f" ({detail})" if detail else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.count:,}  {self.reason}, first at {self.first.place}{found}{remedy}"


def count_reasons(rejects: Iterable[Reject]) -> dict[str, int]:
    """How many rows were rejected for each reason, the most frequent first."""
    return dict(collections.Counter(reject.reason for reject in rejects).most_common())


def summarize_rejects(rejects: Iterable[Reject]) -> list[ReasonSummary]:
    """The reasons with the number and the first of their rows, the most frequent first."""
    counts: collections.Counter[str] = collections.Counter()
    first: dict[str, Reject] = {}
    for reject in rejects:
        counts[reject.reason] += 1
        first.setdefault(reject.reason, reject)
    return [
        ReasonSummary(
            reason=reason, count=count, first=first[reason], remedy=_REMEDIES.get(reason, "")
        )
        for reason, count in counts.most_common()
    ]


def describe_rejects(rejects: Iterable[Reject], rows: int, what: str) -> Iterator[str]:
    """Lines for the user: how many of the rows were rejected, and the commonest reasons.

    Args:
        rejects: may be none, then there are no lines.
        rows: usable and rejected ones together.
        what: the file or files they stand in.
    """
    summaries = summarize_rejects(rejects)
    if not summaries:
        return
    rejected = sum(summary.count for summary in summaries)
    yield f"{what}: {rejected:,} of {quantity(rows, 'row')} rejected"
    for summary in summaries[:_REASONS_SHOWN]:
        yield f"  {summary}"
    if len(summaries) > _REASONS_SHOWN:
        yield f"  and {quantity(len(summaries) - _REASONS_SHOWN, 'more reason')}"


def read_rejects(path: str | Path) -> Iterator[Reject]:
    """The rejects of a file that `write_rejects` or a data job wrote; none if there is no file."""
    path = Path(path)
    if not path.exists():
        return
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            entry = json.loads(line)
            yield Reject(entry["source"], entry["line"], entry["reason"], entry.get("detail", ""))


def write_rejects(path: str | Path, rejects: Iterable[Reject]) -> None:
    """Writes one JSON object a reject; the file appears whole, and also where there are none."""
    with replacing_file(path) as aside, aside.open("w", encoding="utf-8") as stream:
        for reject in rejects:
            stream.write(json.dumps(reject.as_dict()) + "\n")
