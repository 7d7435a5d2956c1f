"""Rows that could not be used: where they stand, why, and how many for each reason."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bert_tf.data.atomic import replacing_file


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

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{place}: {self.reason}" + (f" ({self.detail})" if self.detail else "")


def count_reasons(rejects: Iterable[Reject]) -> dict[str, int]:
    """How many rows were rejected for each reason, the most frequent first."""
    return dict(collections.Counter(reject.reason for reject in rejects).most_common())


def write_rejects(path: str | Path, rejects: Iterable[Reject]) -> None:
    """Writes one JSON object a reject; the file appears whole, and also where there are none."""
    with replacing_file(path) as aside, aside.open("w", encoding="utf-8") as stream:
        for reject in rejects:
            stream.write(json.dumps(reject.as_dict()) + "\n")
