"""Curves of several runs as SVG that takes its colors from the page's style."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from html import escape
from typing import Literal

import numpy as np

from pipeline.report.scatter_plot import ticks

_WIDTH, _HEIGHT = 400, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 10, 40
_MOST_POINTS = 300
_MOST_MARKS = 60

LineKind = Literal["train", "eval", "level"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """A curve.

    Attributes:
        owner: the number of the run it belongs to, from 0.
        name: what it is called where a mark is pointed at.
        kind: `train`, a thin line; `eval`, a thick one with a mark for every point; `level`, a
            dashed one, of what the others are compared with.
        x, y: float [points], x ascending.
    """

    owner: int
    name: str
    kind: LineKind
    x: np.ndarray
    y: np.ndarray


def line_plot(title: str, x_title: str, lines: Sequence[Line]) -> str:
    """The SVG of curves, at least one point among them.

    Its classes are `axis`, `grid`, `curve`, `mark`, the kind of each line and `of-N` for its owner.
    A curve of more than 300 points is drawn as means of as many equal parts.
    """
    drawn_lines = [thinned(line) for line in lines]
    x_low, x_high = _bounds(np.concatenate([line.x for line in drawn_lines]), margin=0.0)
    y_low, y_high = _bounds(np.concatenate([line.y for line in drawn_lines]), margin=0.05)
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT

    def across(values: np.ndarray) -> np.ndarray:
        return _LEFT + (values - x_low) / (x_high - x_low) * (right - _LEFT)

    def down(values: np.ndarray) -> np.ndarray:
        return bottom - (values - y_low) / (y_high - y_low) * (bottom - _TOP)

    drawn = []
    x_ticks, y_ticks = ticks(x_low, x_high), ticks(y_low, y_high)
    for place, value in zip(down(y_ticks), y_ticks, strict=True):
        drawn.append(f'<path class="grid" d="M{_LEFT} {place:.1f}H{right}"/>')
        drawn.append(
            f'<text x="{_LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{short(value)}</text>'
        )
    for place, value in zip(across(x_ticks), x_ticks, strict=True):
        anchor = "end" if place > right - 12 else "middle"
        drawn.append(
            f'<text x="{place:.1f}" y="{bottom + 16}" text-anchor="{anchor}">{short(value)}</text>'
        )
    drawn.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>')
    for line in drawn_lines:
        drawn.append(_drawn(line, across(line.x), down(line.y)))
    drawn.append(
        f'<text class="title" x="{(_LEFT + right) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">'
        f"{escape(x_title)}</text>"
    )
    label = f"{title} by {x_title}: {', '.join(line.name for line in lines)}"
    return (
        f'<svg class="lines" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    )


def thinned(line: Line) -> Line:
    """A curve of at most 300 points: each the mean of an equal part of what there are."""
    count = len(line.x)
    if count <= _MOST_POINTS:
        return line
    starts = np.arange(_MOST_POINTS) * count // _MOST_POINTS
    sizes = np.diff(np.append(starts, count))
    return dataclasses.replace(
        line,
        x=np.add.reduceat(line.x, starts) / sizes,
        y=np.add.reduceat(line.y, starts) / sizes,
    )


def short(value: float) -> str:
    """A tick's number: `0.25`, `2e-05`, `1.5k`, `200k`, `3M`."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _drawn(line: Line, xs: np.ndarray, ys: np.ndarray) -> str:
    pairs = [f"{x:.1f} {y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
    classes = f"{line.kind} of-{line.owner}"
    drawn = f'<path class="curve {classes}" d="M{"L".join(pairs)}"/>'
    if line.kind != "eval" and len(pairs) > 1:
        return drawn
    if len(pairs) > _MOST_MARKS:
        return drawn
    # A mark says its numbers when it is pointed at.
    return drawn + "".join(
        f'<circle class="mark {classes}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
        f"<title>{escape(line.name)}, {at:,.0f}: {value:.4g}</title></circle>"
        for x, y, at, value in zip(
            xs.tolist(), ys.tolist(), line.x.tolist(), line.y.tolist(), strict=True
        )
    )


def _bounds(values: np.ndarray, *, margin: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if high <= low:
        around = max(0.5 * abs(low), 1e-9)
        return low - around, high + around
    more = margin * (high - low)
    return low - more, high + more
