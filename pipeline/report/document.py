"""The renderer of all pages: self-contained HTML in light and dark mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
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
from pipeline.report.plots import scatter_plot

_LONGEST_TEXT, _LONGEST_CELL = 600, 80
_NUMBER = ' class="number"'
GENERATOR = '<meta name="generator" content="bert-pipeline'
"""The beginning of what a page is known by again."""
REPORT = "report.html"
"""The page of an evaluation, in its folder."""
# Whatever a page holds, a browser fetches nothing for it and runs no script in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action "


def style_sheet(name: str) -> str:
    sheet = resources.files("pipeline.report") / "styles" / f"{name}.css"
    return sheet.read_text(encoding="utf-8")


def html_document(
    title: str,
    content: Iterable[Section | str],
    *,
    command: str,
    sheets: Sequence[str] = (),
    style: str = "",
    has_form: bool = False,
) -> str:
    """Render sections and HTML, with files of `styles` and further CSS.

    A page with `has_form` may send it to its own origin.
    """
    shown = "".join(each if isinstance(each, str) else section_html(each) for each in content)
    css = "".join(map(style_sheet, ("page", *sheets))) + style
    policy = _POLICY + ("'self'" if has_form else "'none'")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'{GENERATOR} {command}">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{css}</style></head>\n<body><main>"
        f"<h1>{escape(title)}</h1>\n{shown}</main></body></html>\n"
    )


def section_html(section: Section, *, level: int = 2) -> str:
    match section:
        case TableSection():
            # Of an empty table the note says enough.
            content = table_html(section) if section.rows or not section.note else ""
        case MatrixSection():
            content = _matrix(section)
        case PlotSection():
            content = _plot(section)
        case ExamplesSection():
            shown = "".join(map(_example, section.examples))
            content = f'<ol class="examples">{shown}</ol>' if shown else "<p>None.</p>"
    note = f'<p class="note">{escape(section.note)}</p>' if section.note else ""
    return f"<section><h{level}>{escape(section.title)}</h{level}>{note}{content}</section>\n"


def table_html(table: TableSection) -> str:
    head = "".join(heading(name, kind) for name, kind in table.columns)
    rows = (
        "".join(
            table_cell(value, kind, is_first=place == 0)
            for place, (value, (_, kind)) in enumerate(zip(row, table.columns, strict=True))
        )
        for row in table.rows
    )
    return table_of(table.title, rows, head=head)


def heading(name: str, kind: CellKind = "text") -> str:
    return f'<th scope="col"{"" if kind == "text" else _NUMBER}>{shortened(name)}</th>'


def table_of(title: str, rows: Iterable[str], *, head: str = "", kind: str = "") -> str:
    """Render rows of cells, scrollable on narrow screens, with the keyboard too."""
    table = f'<table class="{kind}">' if kind else "<table>"
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scrolls" role="region" tabindex="0" aria-label="{escape(title)}">'
        f"{table}{head}<tbody>{body}</tbody></table></div>"
    )


def folded(summary: str, content: str, attributes: str = "") -> str:
    """Render content that a click on its summary shows or hides."""
    return f"<details{attributes}><summary>{escape(summary)}</summary>{content}</details>"


def sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]


def table_cell(value: Any, kind: CellKind, *, is_first: bool = False) -> str:
    """A cell of a table; the first one of a row is its heading if it is text."""
    if value is None:
        return "<td></td>"
    if kind == "text":
        text = shortened(str(value))
        return f'<th scope="row">{text}</th>' if is_first else f"<td>{text}</td>"
    if kind == "count":
        return f'<td class="number">{value:,}</td>'
    if kind == "number":
        return f'<td class="number">{value:.4g}</td>'
    width = 100 * min(max(float(value), 0.0), 1.0)
    shown = f"{100 * value:.2f}" if kind == "percent" else f"{value:.4f}"
    return (
        f'<td class="number fraction"><span class="bar" style="width:{width:.1f}%"></span>'
        f"<span>{shown}</span></td>"
    )


def _matrix(matrix: MatrixSection) -> str:
    fractions = matrix.counts / np.maximum(matrix.counts.sum(axis=1, keepdims=True), 1)
    head = "".join(heading(name, "count") for name in matrix.columns)
    rows = (
        f'<th scope="row">{shortened(name)}</th>'
        + "".join(
            f'<td class="{"number right" if place == row else "number"}" '
            f'style="--fraction:{fraction:.3f}">{count:,}</td>'
            for place, (count, fraction) in enumerate(
                zip(matrix.counts[row].tolist(), fractions[row].tolist(), strict=True)
            )
        )
        for row, name in enumerate(matrix.rows)
    )
    corner = f"{escape(matrix.row_title)} ↓ {escape(matrix.column_title)} →"
    head = f'<th scope="col">{corner}</th>{head}'
    return table_of(matrix.title, rows, head=head, kind="matrix")


def _plot(plot: PlotSection) -> str:
    table = plot.table
    numbers = "" if table is None else folded(table.title, table_html(table))
    return f"<figure>{scatter_plot(plot)}</figure>{numbers}"


def _example(example: Example) -> str:
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{shortened(value)}</dd></div>"
        for name, value in {"line": f"{example.line:,}", **example.facts}.items()
    )
    several = len(example.texts) > 1
    texts = "".join(
        f'<p dir="auto">{f"<b>{escape(name)}</b> " if several else ""}'
        f"{shortened(text, _LONGEST_TEXT)}</p>"
        for name, text in example.texts.items()
    )
    return f"<li><dl>{facts}</dl>{texts}</li>"


def shortened(text: str, longest: int = _LONGEST_CELL) -> str:
    return escape(text if len(text) <= longest else f"{text[: longest - 1]}…")
