"""The renderer of all pages: self-contained HTML in light and dark mode."""

from __future__ import annotations

from collections.abc import Iterable
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
from pipeline.report.plots import scatter_plot

_LONGEST_TEXT, _LONGEST_CELL = 600, 80
_NUMBER = ' class="number"'
GENERATOR = '<meta name="generator" content="bert-pipeline'
"""The beginning of what a page is known by again."""
REPORT = "report.html"
"""The page of an evaluation, in its folder."""
# Whatever a page holds, a browser fetches nothing for it and runs no script in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action "
_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --raised: #f4f5f7; --text: #1b1f24;
  --soft: #57606a; --line: #d0d7de; --accent: #2f6db3; --warn: #9a3412; --shade: 45%; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171c; --raised: #1f242b;
  --text: #e6e8eb; --soft: #a5adb8; --line: #3a424d; --accent: #6ba7ec; --warn: #fdba74; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem;
  padding: 1.5rem 1rem 4rem; background: var(--ground); color: var(--text); }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem; } h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; }
p { margin: .4rem 0; overflow-wrap: anywhere; } .note { color: var(--soft); max-width: 45rem; }
.warning { color: var(--warn); } .warning::before { content: "Warning: "; font-weight: 600; }
.metrics { display: grid; gap: .5rem; padding: 0; margin: 1.2rem 0;
  grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); }
.metrics div { background: var(--raised); border-radius: .4rem; padding: .5rem .8rem; }
.metrics dt { color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }
.metrics dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.metrics .chose { outline: 2px solid var(--accent); }
.scrolls { overflow-x: auto; } :focus-visible { outline: 2px solid var(--accent); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; } tbody th { font-weight: 400; } .number { text-align: right; }
.fraction { position: relative; min-width: 7rem; }
.fraction span { position: relative; } .fraction .bar { position: absolute; left: 0; bottom: 0;
  height: 3px; background: var(--accent); }
.matrix td { background: color-mix(in srgb, var(--accent) calc(var(--fraction) * var(--shade)),
  var(--ground)); border: 1px solid var(--line); } .matrix .right { font-weight: 600; }
figure { margin: .5rem 0; } svg { width: 100%; max-width: 32rem; height: auto; font-size: 13px; }
svg text { fill: var(--soft); } svg .title { fill: var(--text); } svg path { fill: none; }
svg .grid { stroke: var(--line); } svg .axis { stroke: var(--soft); }
svg .diagonal { stroke: var(--soft); stroke-dasharray: 5 4; }
svg .point { fill: var(--accent); fill-opacity: .55; stroke: var(--accent); }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--soft); }
.examples { padding: 0; list-style: none; margin: 0; }
.examples li { border-top: 1px solid var(--line); padding: .7rem 0; }
.examples p { white-space: pre-wrap; } .examples dl { display: flex; flex-wrap: wrap;
  gap: .1rem 1.2rem; margin: 0; font-size: .9rem; } .examples dt { display: inline;
  color: var(--soft); } .examples dt::after { content: ": "; }
.examples dd { display: inline; margin: 0; overflow-wrap: anywhere; }
@media (max-width: 30rem) { th, td { padding: .2rem .4rem; font-size: .9rem; }
  .fraction { min-width: 4.2rem; } h1 { font-size: 1.2rem; } }
"""


def html_document(
    title: str,
    content: Iterable[Section | str],
    *,
    command: str,
    style: str = "",
    has_form: bool = False,
) -> str:
    """Renders sections and HTML; a page with `has_form` may send it to its own origin."""
    shown = "".join(each if isinstance(each, str) else section_html(each) for each in content)
    policy = _POLICY + ("'self'" if has_form else "'none'")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'{GENERATOR} {command}">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head>\n<body><main>"
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
    """Renders rows of cells, scrollable on narrow screens, with the keyboard too."""
    table = f'<table class="{kind}">' if kind else "<table>"
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scrolls" role="region" tabindex="0" aria-label="{escape(title)}">'
        f"{table}{head}<tbody>{body}</tbody></table></div>"
    )


def folded(summary: str, content: str, attributes: str = "") -> str:
    """Renders content that a click on its summary shows or hides."""
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
