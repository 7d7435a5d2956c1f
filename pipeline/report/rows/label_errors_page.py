"""The page of `label-errors`: rows with their labels and those that models suggest."""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.base.wording import quantity
from bert_tf.tasks.base.corrections import open_rows
from bert_tf.tasks.base.report_sections import (
    MOST_EXAMPLES,
    Example,
    ExamplesSection,
    Section,
    TableSection,
)
from pipeline.report.document import html_document

if TYPE_CHECKING:
    from bert_tf.tasks.running.evaluation import DoubtedRow

MOST_DOUBTED = 500


def label_errors_page(source: str, doubted: Sequence[DoubtedRow], checked: int) -> str:
    """Render the doubtful rows, the most doubtful first.

    Args:
        source: file of the rows.
        doubted: the rows.
        checked: number of rows that were checked.
    """
    head = (
        f"<p>{quantity(len(doubted), 'doubtful label')} in {quantity(checked, 'row')} of "
        f"{escape(source)}.</p>"
    )
    content: list[Section | str] = [head, *label_errors_sections(doubted)]
    return html_document(f"{source}: doubtful labels", content, command="label-errors")


def label_errors_sections(doubted: Sequence[DoubtedRow]) -> list[Section]:
    """Lay out the doubtful labels with their numbers, and the rows, the most doubtful first."""
    left = len(doubted) - MOST_DOUBTED
    more = f" {left:,} more are in label_errors.csv." if left > 0 else ""
    pairs = Counter((row.label, row.suggested_label) for row in doubted)
    return [
        TableSection(
            title="Labels",
            columns=(("label", "text"), ("suggested", "text"), ("rows", "count")),
            rows=[[*pair, count] for pair, count in pairs.most_common(MOST_EXAMPLES)],
        ),
        ExamplesSection(
            title="Doubtful rows",
            examples=[_example(row) for row in doubted[:MOST_DOUBTED]],
            note="By the probability of the label, the lowest first. Edit corrections.csv: a row "
            f"whose corrected_label is empty keeps its label.{more}",
        ),
    ]


def read_doubted_rows(path: Path) -> list[DoubtedRow] | None:
    """Read the rows of `label_errors.csv`; rows that lack one of its columns are left out.

    Returns:
        The rows; None if the file is no CSV in UTF-8.
    """
    try:
        return _doubted_rows(path)
    except (UnicodeDecodeError, csv.Error):
        return None


def _doubted_rows(path: Path) -> list[DoubtedRow]:
    """Read the rows that have all columns; raise csv.Error and UnicodeDecodeError."""
    from bert_tf.tasks.running.evaluation import DoubtedRow

    known = {field.name for field in dataclasses.fields(DoubtedRow)}
    rows = []
    with open_rows(path) as rows_of_file:
        for cells in rows_of_file:
            try:
                row = DoubtedRow(
                    line=int(cells["line"]),
                    row=int(cells.get("row") or 0),
                    id=cells.get("id") or "",
                    label=cells["label"],
                    label_probability=float(cells["label_probability"]),
                    suggested_label=cells["suggested_label"],
                    suggested_probability=float(cells["suggested_probability"]),
                    texts={name: text or "" for name, text in cells.items() if name not in known},
                )
            except (KeyError, TypeError, ValueError):
                continue
            rows.append(row)
    return rows


def _example(row: DoubtedRow) -> Example:
    return Example(
        line=row.line,
        row=row.row,
        id=row.id,
        facts={
            "label": f"{row.label} ({row.label_probability:.4f})",
            "suggested": f"{row.suggested_label} ({row.suggested_probability:.4f})",
        },
        texts=row.texts,
    )
