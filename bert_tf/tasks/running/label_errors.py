"""Rows whose label is likely wrong, as tasks that find them return them."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from bert_tf.base.files import replacing_file
from bert_tf.tasks.base.task import LabeledRows, TaskResults

_PROBABILITY_DIGITS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoubtedRow:
    """A row whose label is likely wrong, by models that have not seen the row.

    `line` is where it starts in the file, counted from 1.
    """

    line: int
    label: str
    label_probability: float
    suggested_label: str
    suggested_probability: float
    texts: dict[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelErrors:
    """The result of a search for wrong labels.

    Attributes:
        doubted: the most doubtful row first.
        unchecked: usable rows whose label no model could learn, since no other row has it.
        results: of the checked rows, each by a model that has not seen it.
    """

    source: LabeledRows
    inputs: tuple[str, ...]
    doubted: list[DoubtedRow]
    unchecked: int
    results: TaskResults


def write_doubted_rows(path: Path, rows: Sequence[DoubtedRow], inputs: Sequence[str]) -> None:
    """Writes a CSV with a line per row: `line`, labels, their probabilities and the texts."""
    names = [field.name for field in dataclasses.fields(DoubtedRow) if field.name != "texts"]
    with replacing_file(path) as aside, aside.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*names, *inputs])
        for row in rows:
            cells = [getattr(row, name) for name in names]
            writer.writerow(
                [
                    *(
                        round(cell, _PROBABILITY_DIGITS) if isinstance(cell, float) else cell
                        for cell in cells
                    ),
                    *(row.texts[name] for name in inputs),
                ]
            )
