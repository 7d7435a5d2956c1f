"""Reports of rejected rows, and how many are too many (`--max-rejects`)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from bert_tf.base.console import Console
from bert_tf.base.wording import quantity
from bert_tf.config.section import Section
from bert_tf.data.tables.rejects import Reject, describe_rejects, read_rejects
from pipeline.outputs.manifest import rejects_path

_ROWS = re.compile(r"\d+", re.ASCII)
_PERCENTAGE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%", re.ASCII)
# 1e-05 is how Python writes 0.00001.
_FRACTION = re.compile(r"\d*\.\d+|\d+\.|\d+(?:\.\d+)?e-\d{1,3}", re.ASCII)
_PARTS = ("train", "eval")


@dataclasses.dataclass(frozen=True)
class RejectLimit:
    """How many rejected rows are too many.

    Attributes:
        text: as the user wrote it: `10`, `0.1` or `10%`.
        most: rows, or a fraction of the rows, 0 to 1.
    """

    text: str
    most: int | Fraction

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a number of rows (`1` is one row), a fraction (`1.0` is all) or a percentage.

        Raises:
            ValueError: it is none of these, or more than all rows.
        """
        text = text.strip()
        if _ROWS.fullmatch(text):
            return cls(text, int(text))
        fraction = None
        if match := _PERCENTAGE.fullmatch(text):
            fraction = Fraction(match[1].rstrip(".")) / 100
        elif _FRACTION.fullmatch(text):
            fraction = Fraction(text.rstrip("."))
        if fraction is None or fraction > 1:
            raise ValueError(
                f"expected a number of rows (10) or a fraction of them (0.1 or 10%), got {text!r}"
            )
        return cls(text, fraction)

    def is_exceeded(self, rejected: int, rows: int) -> bool:
        return rejected > (self.most if isinstance(self.most, int) else self.most * rows)

    def excess(self, inputs: str, rejected: int, rows: int) -> str:
        return (
            f"{inputs}: {rejected:,} of {quantity(rows, 'row')} rejected, more than --max-rejects "
            f"{self.text} allows"
        )


def report_rejects(console: Console, rejects_file: Path, rows: int, inputs: Sequence[str]) -> None:
    """Report frequent reasons in a file of rejects, if any.

    Args:
        rejects_file: as a job wrote it; it may be missing.
        rows: number of all rows read.
        inputs: paths, named in the message.
    """
    warn_of_rejects(console, read_rejects(rejects_file), rows, ", ".join(inputs))


def warn_of_rejects(console: Console, rejects: Iterable[Reject], rows: int, inputs: str) -> None:
    """Report frequent reasons of rejects, if any.

    Args:
        rejects: of all inputs.
        rows: number of all rows read.
        inputs: their names in the message.
    """
    for number, line in enumerate(describe_rejects(rejects, rows, inputs)):
        console.info(line) if number else console.warn(line)


def excess_of(limit: RejectLimit, config: Section, counts: Mapping[str, Any]) -> str | None:
    """Say why a finished job rejected more rows than the limit allows; None if it did not.

    The limit holds for each file of fine-tuning, otherwise for all inputs together.

    Args:
        limit: of `--max-rejects`.
        config: of the job.
        counts: of its manifest.
    """
    values = config.as_dict()
    for inputs, rejected, rows in _counted(values, counts):
        if limit.is_exceeded(rejected, rows):
            reasons = rejects_path(values["output"])
            return f"{limit.excess(inputs, rejected, rows)}; the reasons: {reasons}"
    return None


def _counted(
    values: Mapping[str, Any], counts: Mapping[str, Any]
) -> Iterator[tuple[str, int, int]]:
    """Yield the name, the rejected rows and all rows of each part that the limit holds for."""
    parts = [name for name in _PARTS if name in counts]
    by_file: dict[str, list[Mapping[str, int]]] = {}
    for name in parts:  # rows that are held out for evaluation are of the training file
        by_file.setdefault(name if values[name] else "train", []).append(counts[name])
    for name, of_file in by_file.items():
        rejected, rows = (
            sum(each[key] for each in of_file) for key in ("rows_rejected", "rows_in")
        )
        yield values[name], rejected, rows
    if not parts and "rejected" in counts:
        rejected = sum(counts["rejected"].values())
        rows = counts["rows_in"] if "rows_in" in counts else corpus_rows(counts)
        yield values.get("data") or ", ".join(values["input"]), rejected, rows


def corpus_rows(counts: Mapping[str, Any]) -> int:
    """Return the rows of a corpus: documents kept, dropped and rejected (of some, their lines)."""
    left_out = [*counts["dropped"].values(), *counts["rejected"].values()]
    return counts["documents"] + sum(left_out)
