"""The renderer of all pages: self-contained HTML in light and dark mode.

A task describes its page by sections of data (`report_sections.py` of `bert_tf/tasks/base`) and
knows no HTML; this module turns each kind of section into HTML, and escapes all text. A new kind of
section needs a case in `section_html`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from bert_tf.tasks.base.report_sections import (
    CellKind,
    Example,
    ExamplesSection,
    HistogramSection,
    Mark,
    MatrixSection,
    PlotSection,
    Section,
    TableSection,
)
from pipeline.report.plots import histogram_plot, scatter_plot

_LONGEST_TEXT = 600  # characters of an example
_LONGEST_CELL = 80
# Characters that fit on half of a wide screen (33rem at about 0.5rem a character), and that the
# padding of a cell takes.
_HALF_SCREEN = 65
_PADDING = 3
_LONG_NAME = 20  # characters; as wide as a tile
_LEAST_SHARE = 5e-5  # smaller ones would be written as 0.00%
_NUMBER = ' class="number"'
GENERATOR = '<meta name="generator" content="bert-pipeline'
"""The beginning of the element by which a page is recognized."""
REPORT = "report.html"
"""The page of an evaluation, in its folder."""
# A browser fetches nothing for a page and runs no script in it, even if a text contains one.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action "


def style_sheet(name: str) -> str:
    """Return the CSS of a file in `styles`, by its name without the ending."""
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
    """Render sections and HTML as a page.

    Args:
        title: of the page and its heading.
        content: sections, and HTML whose text is escaped already.
        command: that makes the page, by which it is recognized.
        sheets: further files of `styles`.
        style: further CSS.
        has_form: whether the page may send a form to its own origin.

    Returns:
        The page, which fetches nothing and runs no script.
    """
    body = "".join(part if isinstance(part, str) else section_html(part) for part in content)
    css = "".join(map(style_sheet, ("page", *sheets))) + style
    policy = _POLICY + ("'self'" if has_form else "'none'")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'{GENERATOR} {command}">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{css}</style></head>\n<body><main>"
        f'<h1>{escape(title)}</h1>\n<div class="sections">{body}</div></main></body></html>\n'
    )


def section_html(section: Section, *, level: int = 2) -> str:
    """Render a section under a heading of the given level."""
    match section:
        case TableSection():
            # If the table is empty, its note says enough.
            content = table_html(section) if section.rows or not section.note else ""
        case MatrixSection():
            content = _matrix(section)
        case PlotSection():
            content = _plot(section)
        case HistogramSection():
            content = _histogram(section)
        case ExamplesSection():
            examples = "".join(map(_example, section.examples))
            legend = "".join(
                f'<span><mark class="{kind}">{kind}</mark> {escape(meaning)}</span>'
                for kind, meaning in section.legend.items()
            )
            legend = f'<p class="legend">{legend}</p>' if examples and legend else ""
            content = (
                f'{legend}<ol class="examples">{examples}</ol>' if examples else "<p>None.</p>"
            )
    note = f'<p class="note">{escape(section.note)}</p>' if section.note else ""
    kind = ' class="narrow"' if _is_narrow(section) else ""
    title = escape(sentence_case(section.title))
    return f"<section{kind}><h{level}>{title}</h{level}>{note}{content}</section>\n"


# Characters that cells of numbers and bars take, a count in a matrix, and the arrows and blanks in
# its corner.
_CELL_CHARACTERS = {"fraction": 10, "percent": 10, "share": 10, "count": 5, "number": 7}
_COUNT_CHARACTERS = 4
_ARROWS = 5


def _is_narrow(section: Section) -> bool:
    """Return whether a section fits on half of a wide screen, so that two are side by side."""
    match section:
        case PlotSection() | HistogramSection():
            return True
        case MatrixSection():
            titles = len(section.row_title) + len(section.column_title)
            corner = max(titles, *map(len, section.rows)) + _ARROWS
            # Names of columns are bold, so each takes a little more.
            columns = [max(len(name) + 1, _COUNT_CHARACTERS) for name in section.columns]
            widths = [corner, *columns]
        case TableSection():
            widths = [
                max(len(name), _CELL_CHARACTERS.get(kind, 0)) for name, kind in section.columns
            ]
            for row in section.rows:
                widths = [
                    max(width, len(cell)) if isinstance(cell, str) else width
                    for width, cell in zip(widths, row, strict=True)
                ]
        case ExamplesSection():
            return False
    return sum(widths) + _PADDING * len(widths) <= _HALF_SCREEN


def table_html(table: TableSection) -> str:
    """Render a table with its columns' names."""
    head = "".join(heading(name, kind) for name, kind in table.columns)
    scales = [1.0] * len(table.columns)
    for place, (_, kind) in enumerate(table.columns):
        if kind == "share":
            scales[place] = max((row[place] or 0.0 for row in table.rows), default=0.0)
    rows = []
    for row in table.rows:
        columns = zip(row, table.columns, scales, strict=True)
        cells = [
            table_cell(value, kind, is_first=place == 0, scale=scale)
            for place, (value, (_, kind), scale) in enumerate(columns)
        ]
        rows.append("".join(cells))
    return table_of(table.title, rows, head=head)


def heading(name: str, kind: CellKind = "text") -> str:
    """Render the name of a column; names of columns of numbers are right-aligned."""
    return f'<th scope="col"{"" if kind == "text" else _NUMBER}>{shortened(name)}</th>'


def table_of(title: str, rows: Iterable[str], *, head: str = "", kind: str = "") -> str:
    """Render rows of cells, which scroll on narrow screens, also with the keyboard.

    Args:
        title: for screen readers.
        rows: the cells of each row, as HTML.
        head: cells of the header, as HTML; none without.
        kind: class of the table in the style sheets.

    Returns:
        The table in a region that scrolls.
    """
    table = f'<table class="{kind}">' if kind else "<table>"
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scrolls" role="region" tabindex="0" aria-label="{escape(title)}">'
        f"{table}{head}<tbody>{body}</tbody></table></div>"
    )


def tiles_html(tiles: Mapping[str, str], *, chosen: str | None = None) -> str:
    """Render a few facts at a glance; the `chosen` one is framed."""
    frame = ' class="chose"'
    cells = "".join(
        f"<div{frame if name == chosen else ''}>"
        f"<dt>{breakable(name)}</dt><dd>{escape(text)}</dd></div>"
        for name, text in tiles.items()
    )
    return f'<dl class="metrics">{cells}</dl>\n' if cells else ""


def breakable(name: str) -> str:
    """Escape a name; a long one may be broken at its underscores, not within a word."""
    text = escape(name)
    return text.replace("_", "_<wbr>") if len(name) > _LONG_NAME else text


def folded(summary: str, content: str, attributes: str = "") -> str:
    """Render content that a click on its summary shows or hides."""
    return f"<details{attributes}><summary>{escape(summary)}</summary>{content}</details>"


def preformatted(lines: Sequence[str]) -> str:
    """Render lines as they are, scrollable; empty without lines."""
    text = escape("\n".join(lines))
    return f'<pre role="region" tabindex="0" aria-label="content">{text}</pre>' if lines else ""


def sentence_case(text: str) -> str:
    """Return a text with its first character in upper case."""
    return text[:1].upper() + text[1:]


def table_cell(value: Any, kind: CellKind, *, is_first: bool = False, scale: float = 1.0) -> str:
    """Render a cell of a table.

    Args:
        value: of the cell; None leaves it empty.
        kind: how to write it; fractions and percentages get a bar.
        is_first: whether it is the first of its row, whose text is the heading of the row.
        scale: value whose bar has the full length.

    Returns:
        The cell as HTML.
    """
    if value is None:
        return "<td></td>"
    if kind == "text":
        text = shortened(str(value))
        return f'<th scope="row">{text}</th>' if is_first else f"<td>{text}</td>"
    if kind == "count":
        return f'<td class="number">{value:,}</td>'
    if kind == "number":
        return f'<td class="number">{value:.4g}</td>'
    width = 100 * min(max(float(value) / (scale or 1.0), 0.0), 1.0)
    number = {"percent": f"{100 * value:.2f}", "share": _percent(value)}.get(kind, f"{value:.4f}")
    return (
        f'<td class="number fraction"><span class="bar" style="width:{width:.1f}%"></span>'
        f"<span>{escape(number)}</span></td>"
    )


def _percent(value: float) -> str:
    """Format a share with two digits at least: `45%`, `4.5%`, `0.05%`, `<0.01%`."""
    if 0 < value < _LEAST_SHARE:
        return "<0.01%"
    if value >= 0.1:
        return f"{value:.0%}"
    if value >= 0.01 or value == 0:
        return f"{value:.1%}"
    return f"{value:.2%}"


def _matrix(matrix: MatrixSection) -> str:
    """Render counts, each shaded by its fraction of the row."""
    fractions = matrix.counts / np.maximum(matrix.counts.sum(axis=1, keepdims=True), 1)
    head = "".join(heading(name, "count") for name in matrix.columns)
    rows = []
    for row, name in enumerate(matrix.rows):
        cells = [f'<th scope="row">{shortened(name)}</th>']
        values = zip(matrix.counts[row].tolist(), fractions[row].tolist(), strict=True)
        for place, (count, fraction) in enumerate(values):
            kind = "number right" if place == row else "number"
            cells.append(f'<td class="{kind}" style="--fraction:{fraction:.3f}">{count:,}</td>')
        rows.append("".join(cells))
    corner = f"{escape(matrix.row_title)} ↓ {escape(matrix.column_title)} →"
    head = f'<th scope="col">{corner}</th>{head}'
    return table_of(matrix.title, rows, head=head, kind="matrix")


def _plot(plot: PlotSection) -> str:
    """Render a plot, with its numbers in a table behind a click."""
    table = plot.table
    numbers = "" if table is None else folded(table.title, table_html(table))
    return f"<figure>{scatter_plot(plot)}</figure>{numbers}"


def _histogram(section: HistogramSection) -> str:
    """Draw a histogram, with its numbers in a folded table, and a key if bars have two parts."""
    total = max(int(section.counts.sum()), 1)
    columns: list[tuple[str, CellKind]] = [
        (section.x_title, "text"), (section.noun, "count"), ("of all", "share"),
    ]  # fmt: skip
    rows: list[list[Any]] = [
        [name, count, count / total]
        for name, count in zip(section.names, section.counts.tolist(), strict=True)
    ]
    key = ""
    if section.parts is not None:
        columns += [(section.part_noun, "count"), ("of these", "fraction")]
        for row, part in zip(rows, section.parts.tolist(), strict=True):
            row += [part, part / row[1] if row[1] else None]
        key = (
            f'<p class="legend"><span><i class="bar"></i>{escape(section.noun)}</span> '
            f'<span><i class="part"></i>{escape(section.part_noun)}</span></p>'
        )
    numbers = TableSection(title=f"{section.title} in numbers", columns=tuple(columns), rows=rows)
    return (
        f"{key}<figure>{histogram_plot(section)}</figure>"
        f"{folded(numbers.title, table_html(numbers))}"
    )


def marked_html(text: str, marks: Sequence[Mark]) -> str:
    """Render a text with its marks; where a `missed` and a `wrong` one meet, they are `both`.

    A label follows the last piece of its mark.
    """
    inside = [mark for mark in marks if 0 <= mark.start < mark.end <= len(text)]
    cuts = {0, len(text)}
    for mark in inside:
        cuts.update((mark.start, mark.end))
    pieces = []
    for begin, end in itertools.pairwise(sorted(cuts)):
        here = [mark for mark in inside if mark.start <= begin < mark.end]
        marked = escape(text[begin:end])
        if not here:
            pieces.append(marked)
            continue
        kinds = {mark.kind for mark in here}
        kind = "both" if {"missed", "wrong"} <= kinds else here[0].kind
        ending = [mark.label for mark in here if mark.label and mark.end == end]
        labels = "".join(f"<small>{escape(label)}</small>" for label in ending)
        pieces.append(f'<mark class="{kind}">{marked}{labels}</mark>')
    return "".join(pieces)


def _example(example: Example) -> str:
    """Render a row of a file: its line, row and id, facts about it, and its texts."""
    named = {
        "line": "" if example.line is None else f"{example.line:,}",
        "row": f"{example.row:,}" if example.row else "",
        "id": example.id,
    }
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{shortened(value)}</dd></div>"
        for name, value in {**named, **example.facts}.items()
        if value or name not in named
    )
    texts = ""
    for name, text in example.texts.items():
        label = f"<b>{escape(name)}</b> " if len(example.texts) > 1 else ""
        texts += f'<p dir="auto">{label}{_example_text(text, example.marks.get(name, ()))}</p>'
    return f"<li><dl>{facts}</dl>{texts}</li>"


def _example_text(text: str, marks: Sequence[Mark]) -> str:
    if not marks:
        return shortened(text, _LONGEST_TEXT)
    # No mark is cut off, since the marks are the point of the example.
    longest = max(_LONGEST_TEXT, *(mark.end for mark in marks))
    return marked_html(text[:longest], marks) + ("…" if len(text) > longest else "")


def shortened(text: str, longest: int = _LONGEST_CELL) -> str:
    """Escape a text, and cut it at `longest` characters."""
    if len(text) > longest:
        text = f"{text[: longest - 1]}…"
    return escape(text)
