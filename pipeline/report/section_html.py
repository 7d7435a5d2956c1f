"""Sections of an evaluation as HTML; every text of the data is escaped and bounded."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from bert_tf.tasks.base.report_sections import (
    CellKind,
    Example,
    ExamplesSection,
    MatrixSection,
    PlotSection,
    Section,
    TableSection,
)
from pipeline.report.scatter_plot import scatter_plot

_LONGEST_TEXT, _LONGEST_CELL = 600, 80


def section_html(section: Section) -> str:
    """A heading, the note and what the section shows."""
    match section:
        case TableSection():
            # Of an empty table the note says enough.
            content = table_html(section) if section.rows or not section.note else ""
        case MatrixSection():
            content = _matrix(section)
        case PlotSection():
            content = _plot(section)
        case ExamplesSection():
            content = _examples(section)
    note = f'<p class="note">{escape(section.note)}</p>' if section.note else ""
    return f"<section><h2>{escape(section.title)}</h2>{note}{content}</section>\n"


def table_html(table: TableSection) -> str:
    """A table without its heading and note."""
    head = "".join(
        f'<th scope="col"{_class(kind)}>{_shortened(name)}</th>' for name, kind in table.columns
    )
    body = "".join(
        "<tr>"
        + "".join(
            _cell(value, kind, is_first=place == 0)
            for place, (value, (_, kind)) in enumerate(zip(row, table.columns, strict=True))
        )
        + "</tr>"
        for row in table.rows
    )
    return scrolling(
        table.title, f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _class(kind: CellKind) -> str:
    return "" if kind == "text" else ' class="number"'


def _cell(value: Any, kind: CellKind, *, is_first: bool) -> str:
    if value is None:
        return "<td></td>"
    if kind == "text":
        text = _shortened(str(value))
        return f'<th scope="row">{text}</th>' if is_first else f"<td>{text}</td>"
    if kind == "count":
        return f'<td class="number">{value:,}</td>'
    if kind == "number":
        return f'<td class="number">{value:.4g}</td>'
    width = 100 * min(max(float(value), 0.0), 1.0)
    return (
        f'<td class="number fraction"><span class="bar" style="width:{width:.1f}%"></span>'
        f"<span>{_portion(value, kind)}</span></td>"
    )


def _portion(value: float, kind: CellKind) -> str:
    return f"{100 * value:.2f}" if kind == "percent" else f"{value:.4f}"


def _matrix(matrix: MatrixSection) -> str:
    fractions = matrix.counts / np.maximum(matrix.counts.sum(axis=1, keepdims=True), 1)
    head = "".join(
        f'<th scope="col" class="number">{_shortened(name)}</th>' for name in matrix.columns
    )
    body = "".join(
        f'<tr><th scope="row">{_shortened(name)}</th>'
        + "".join(
            f'<td class="{"number right" if place == row else "number"}" '
            f'style="--fraction:{fraction:.3f}">{count:,}</td>'
            for place, (count, fraction) in enumerate(
                zip(matrix.counts[row].tolist(), fractions[row].tolist(), strict=True)
            )
        )
        + "</tr>"
        for row, name in enumerate(matrix.rows)
    )
    corner = f"{escape(matrix.row_title)} ↓ {escape(matrix.column_title)} →"
    return scrolling(
        matrix.title,
        f'<table class="matrix"><thead><tr><th scope="col">{corner}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>",
    )


def _plot(plot: PlotSection) -> str:
    numbers = ""
    if plot.table is not None:
        summary = f"<summary>{escape(plot.table.title)}</summary>"
        numbers = f"<details>{summary}{table_html(plot.table)}</details>"
    return f"<figure>{scatter_plot(plot)}</figure>{numbers}"


def _examples(section: ExamplesSection) -> str:
    if not section.examples:
        return "<p>None.</p>"
    return f'<ol class="examples">{"".join(map(_example, section.examples))}</ol>'


def _example(example: Example) -> str:
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{_shortened(value)}</dd></div>"
        for name, value in {"line": f"{example.line:,}", **example.facts}.items()
    )
    several = len(example.texts) > 1
    texts = "".join(
        f'<p dir="auto">{f"<b>{escape(name)}</b> " if several else ""}'
        f"{_shortened(text, _LONGEST_TEXT)}</p>"
        for name, text in example.texts.items()
    )
    return f"<li><dl>{facts}</dl>{texts}</li>"


def scrolling(title: str, table: str) -> str:
    """A table that scrolls by itself on a narrow screen, by the keyboard too."""
    label = escape(title)
    return f'<div class="scrolls" role="region" tabindex="0" aria-label="{label}">{table}</div>'


def _shortened(text: str, longest: int = _LONGEST_CELL) -> str:
    return escape(text if len(text) <= longest else f"{text[: longest - 1]}…")
