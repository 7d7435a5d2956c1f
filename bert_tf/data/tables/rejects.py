"""Rows that cannot be used: where they are, the reasons, and counts for each reason."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from bert_tf.base.errors import InputError, RowsRejected
from bert_tf.base.files import as_path, replacing_file
from bert_tf.base.wording import quantity
from bert_tf.data.tables.dialect import INVALID_UTF8
from bert_tf.data.tables.places import ID, Place

# The same fault has the same reason in all readers.
LONE_SURROGATE = "lone surrogate"
TOO_LONG = "row is too long"
TOO_FEW_CELLS = "too few cells"
TOO_MANY_CELLS = "too many cells"
HEADER_REPEATED = "repeats the header"
QUOTE_NOT_CLOSED = "quote is not closed"
TEXT_AFTER_QUOTE = "text after a closing quote"
ESCAPED_QUOTE = "quote after a backslash, where CSV doubles it"
NOT_JSON = "not JSON"
NOT_AN_OBJECT = "not a JSON object"
DUPLICATE_KEY = "duplicate key"
# Reasons made of the name of a column
column_is_empty = "column {!r} is empty".format
column_is_missing = "column {!r} is missing".format
column_is_not_text = "column {!r} is not text".format
column_is_not_a_value = "column {!r} is neither text nor number".format
column_is_not_words = "column {!r} is not a list of texts".format

REMEDIES = {
    HEADER_REPEATED: "remove such lines, which come from concatenating files",
    ESCAPED_QUOTE: """double the quotes inside cells, in Spark by .option("escape", '"')""",
    TOO_LONG: "correct the line ends of the file, or raise max_row_characters",
    "article has no list of paragraphs": "jq -c '.data[]' makes lines of rows that are no articles",
}


def wrong_cells(count: int, columns: int, *, has_header: bool = True) -> tuple[str, str]:
    """Return reason and detail for a row with the wrong number of cells.

    Args:
        count: cells of the row.
        columns: cells that a row must have.
        has_header: whether `columns` comes from the header, or from the first row.
    """
    reason = TOO_FEW_CELLS if count < columns else TOO_MANY_CELLS
    return reason, f"{count} where the {'header' if has_header else 'first row'} has {columns}"


_REASONS_SHOWN = 5  # in lines of their own
_REASONS_IN_BRIEF = 3  # in a line with more than these
_DETAIL_CHARACTERS = 80


def json_line(entry: Mapping[str, Any]) -> bytes:
    """Write a line of a list; bytes of names that are not UTF-8 are escaped."""
    return json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


@dataclasses.dataclass(frozen=True, slots=True)
class Reject:
    """A row that is left out."""

    source: str  # file of the row
    line: int  # its first line, counted from 1 (Parquet: the row); 0 where the format has none
    reason: str  # one of few constant texts, so that rejects can be counted by it
    detail: str = ""  # the value or number at fault; empty if the reason says it all
    # its number in a spreadsheet, where the header is row 1; 0 if it equals the line, or if the
    # format has no lines. Line ends in cells make them differ.
    row: int = 0
    id: str = ""  # the row's own name; "" if it has none

    @classmethod
    def at(cls, source: str | Path, place: Place, reason: str, detail: str = "") -> Self:
        """Make the reject of a row whose place is known."""
        return cls(str(source), place.line, reason, detail, place.row, place.id)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that a line of a rejects file has."""
        entry: dict[str, Any] = {"source": self.source, "line": self.line, "reason": self.reason}
        if self.row:
            entry["row"] = self.row
        if self.id:
            entry[ID] = self.id
        if self.detail:
            entry["detail"] = self.detail
        return entry

    def json_line(self) -> bytes:
        """Return the line of a rejects file, with its line end."""
        return json_line(self.as_dict())

    @property
    def place(self) -> str:
        """Return `file:line`, with row and id as far as there are any, or only the file."""
        place = Place(self.line, self.row, self.id)
        if self.line:
            return f"{self.source}:{place}"
        return f"{self.source} ({place.names})" if place.names else self.source

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" + (f" ({self.detail})" if self.detail else "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReasonSummary:
    """The rejects for one reason."""

    count: int  # number of these rejects
    first: Reject  # the first in the file

    @property
    def reason(self) -> str:
        """Return the reason of all of them."""
        return self.first.reason

    @functools.cached_property
    def remedy(self) -> str:
        """Return advice for the reason; "" if it depends on the rows."""
        if self.reason == INVALID_UTF8:
            from bert_tf.data.tables.text_files import encoding_advice  # Arrow: help needs none

            return encoding_advice(self.first.source)
        return REMEDIES.get(self.reason, "")

    @property
    def brief(self) -> str:
        """Return reason, place and detail of the first, the detail cut to _DETAIL_CHARACTERS."""
        detail = self.first.detail
        if len(detail) > _DETAIL_CHARACTERS:
            detail = detail[: _DETAIL_CHARACTERS - 1] + "…"
        return f"{self.reason}, first at {self.first.place}" + (f" ({detail})" if detail else "")

    def __str__(self) -> str:
        return f"{self.count:,}  {self.brief}" + (f"; {self.remedy}" if self.remedy else "")


class RejectTally:
    """Counts rejects by reason and keeps the first of each, in bounded memory."""

    def __init__(self, rejects: Iterable[Reject] = ()):
        self._counts: collections.Counter[str] = collections.Counter()
        self._first: dict[str, Reject] = {}
        self.add(rejects)

    def add(self, rejects: Iterable[Reject]) -> None:
        """Count more rejects."""
        for reject in rejects:
            self._counts[reject.reason] += 1
            self._first.setdefault(reject.reason, reject)

    @property
    def total(self) -> int:
        """Return the number of rejects so far."""
        return self._counts.total()

    def summaries(self) -> list[ReasonSummary]:
        """Return a summary per reason, the most frequent first."""
        firsts = ((count, self._first[reason]) for reason, count in self._counts.most_common())
        return [ReasonSummary(count=count, first=first) for count, first in firsts]

    def brief(self) -> str:
        """List the most frequent reasons in a line: `3 × not JSON, first at a.jsonl:7; 1 × …`."""
        summaries = self.summaries()
        texts = [
            f"{summary.count:,} × {summary.brief}" for summary in summaries[:_REASONS_IN_BRIEF]
        ]
        if more := len(summaries) - len(texts):
            texts.append(f"and {quantity(more, 'more reason')}")
        return "; ".join(texts)


@contextmanager
def keeping_rejects(rejects: Sequence[Reject]) -> Iterator[None]:
    """Attach collected rejects to errors of a reader that keeps none."""
    try:
        yield
    except RowsRejected as error:
        raise RowsRejected(str(error), rejects) from error


def nothing_usable(
    source: str | Path,
    rejects: Sequence[Reject] | RejectTally,
    *,
    noun: str = "row",
    advice: str = "",
) -> InputError:
    """Return the error for a file without a usable row.

    Args:
        source: the file.
        rejects: all of them, or a tally of them.
        noun: the word for a row in the message, in the singular.
        advice: advice besides the remedy of the most frequent reason.

    Returns:
        RowsRejected, which has the rejects unless there is only a tally; InputError without
        rejects.
    """
    tally = rejects if isinstance(rejects, RejectTally) else RejectTally(rejects)
    if not tally.total:
        return InputError(f"{source}: has no {noun}s; add some")
    main = tally.summaries()[0]
    is_one = tally.total == 1
    counted = f"its only {noun} cannot" if is_one else f"none of its {tally.total:,} {noun}s can"
    return RowsRejected(
        f"{source}: {counted} be used: {tally.brief()}"
        + "".join(f"; {text}" for text in (main.remedy, advice) if text),
        () if isinstance(rejects, RejectTally) else rejects,
    )


def count_reasons(rejects: Iterable[Reject]) -> dict[str, int]:
    """Return the number of rejects for each reason, the most frequent first."""
    return dict(collections.Counter(reject.reason for reject in rejects).most_common())


def describe_rejects(rejects: Iterable[Reject], rows: int, what: str) -> Iterator[str]:
    """Yield lines for the user: the number of rejects, and the commonest reasons.

    Args:
        rejects: if there are none, there are no lines.
        rows: usable and rejected ones together.
        what: name of the file or files, which begins the first line.
    """
    summaries = RejectTally(rejects).summaries()
    if not summaries:
        return
    rejected = sum(summary.count for summary in summaries)
    yield f"{what}: {rejected:,} of {quantity(rows, 'row')} rejected"
    for summary in summaries[:_REASONS_SHOWN]:
        yield f"  {summary}"
    if len(summaries) > _REASONS_SHOWN:
        yield f"  and {quantity(len(summaries) - _REASONS_SHOWN, 'more reason')}"


def read_rejects(path: str | Path) -> Iterator[Reject]:
    """Read the rejects that `write_rejects` or a data job wrote; none without a file."""
    path = as_path(path)
    if not path.exists():
        return
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            entry = json.loads(line)
            yield Reject(
                entry["source"],
                entry["line"],
                entry["reason"],
                detail=entry.get("detail", ""),
                row=entry.get("row", 0),
                id=entry.get(ID, ""),
            )


def write_rejects(path: str | Path, rejects: Iterable[Reject]) -> None:
    """Write a JSON object per reject; the file appears whole, even without any."""
    with replacing_file(path) as aside, aside.open("wb") as stream:
        stream.writelines(reject.json_line() for reject in rejects)
