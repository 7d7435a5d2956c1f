"""Points and curves as SVG that takes its colors from the page's style.

Drawn here rather than by a plotting library: a page stays small, follows light and dark mode, and
has marks that a screen reader can read.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from html import escape
from typing import Literal

import numpy as np

from bert_tf.tasks.base.report_sections import HistogramSection, PlotSection

_TICKS = 5  # of an axis, about
# Radius of a point, in units of the drawing.
_SMALLEST = 3.0
_LARGEST = 15.0
_MOST_POINTS = 300  # of a curve
_MOST_MARKS = 60  # of a curve; more would hide it
_NARROW_BAR = 8.0  # units of the drawing: narrower bars have a smaller gap between them

LineKind = Literal["train", "eval", "level"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """A curve.

    Attributes:
        owner: number of its run, from 0, which gives it its color.
        name: for the title of its marks.
        kind: `train` (thin), `eval` (thick, with marks) or `level` (dashed, for comparison).
        x: float [points], ascending.
        y: float [points].
    """

    owner: int
    name: str
    kind: LineKind
    x: np.ndarray
    y: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Frame:
    """The coordinates of a drawing, from its upper left corner, and bounds of the values."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    x_bounds: tuple[float, float]
    y_bounds: tuple[float, float]

    def across(self, values: np.ndarray) -> np.ndarray:
        """Return the horizontal places of values."""
        low, high = self.x_bounds
        return self.left + (values - low) / (high - low) * (self.right - self.left)

    def down(self, values: np.ndarray) -> np.ndarray:
        """Return the vertical places of values; larger ones are higher up."""
        low, high = self.y_bounds
        return self.bottom - (values - low) / (high - low) * (self.bottom - self.top)

    def x_ticks(self) -> list[tuple[float, float]]:
        """Return place and value of each tick."""
        values = ticks(*self.x_bounds)
        return list(zip(self.across(values).tolist(), values.tolist(), strict=True))

    def rows(self, shown: Callable[[float], str]) -> str:
        """Draw horizontal lines at round values, with their numbers."""
        values = ticks(*self.y_bounds)
        return "".join(
            f'<path class="grid" d="M{self.left} {place:.1f}H{self.right}"/>'
            f'<text x="{self.left - 7}" y="{place + 4:.1f}" text-anchor="end">{shown(value)}</text>'
            for place, value in zip(self.down(values).tolist(), values.tolist(), strict=True)
        )

    def axes(self, x_title: str) -> str:
        """Draw the two axes, and the title of the horizontal one."""
        middle = (self.left + self.right) / 2
        return (
            f'<path class="axis" d="M{self.left} {self.top}V{self.bottom}H{self.right}"/>'
            f'<text class="title" x="{middle}" y="{self.height - 6}" text-anchor="middle">'
            f"{escape(x_title)}</text>"
        )

    def svg(self, label: str, drawn: str, *, attributes: str = "") -> str:
        """Return the drawing with a label for screen readers."""
        return (
            f'<svg{attributes} viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(label)}">{drawn}</svg>'
        )


# Sizes of the three kinds of drawings, in units of the `viewBox`.
_POINTS_FRAME = functools.partial(
    _Frame, width=480, height=400, left=62, right=466, top=12, bottom=354
)
_BARS_FRAME = functools.partial(
    _Frame, width=480, height=250, left=52, right=456, top=12, bottom=206
)
# Units of the drawing that a digit of a tick takes, and the least gap between two ticks.
_DIGIT = 8.0
_GAP = 12.0
_CURVES_FRAME = functools.partial(
    _Frame, width=400, height=230, left=52, right=390, top=10, bottom=190
)


def scatter_plot(plot: PlotSection) -> str:
    """Draw points.

    Args:
        plot: the points, their weights as areas, titles and bounds.

    Returns:
        SVG with the classes `axis`, `grid`, `diagonal`, `interval` and `point`.
    """
    heights = plot.y if plot.intervals is None else plot.intervals.ravel()
    frame = _POINTS_FRAME(
        x_bounds=_point_bounds(plot.x, plot.bounds), y_bounds=_point_bounds(heights, plot.bounds)
    )
    drawn = [
        f'<path class="grid" d="M{place:.1f} {frame.top}V{frame.bottom}"/>'
        f'<text x="{place:.1f}" y="{frame.bottom + 17}" text-anchor="middle">{value:g}</text>'
        for place, value in frame.x_ticks()
    ]
    drawn += [frame.rows("{:g}".format), frame.axes(plot.x_title)]
    if plot.has_diagonal:
        x_low, x_high = frame.x_bounds
        y_low, y_high = frame.y_bounds
        ends = np.array([max(x_low, y_low), min(x_high, y_high)])
        x_begin, x_end = frame.across(ends)
        y_begin, y_end = frame.down(ends)
        drawn.append(
            f'<path class="diagonal" d="M{x_begin:.1f} {y_begin:.1f}L{x_end:.1f} {y_end:.1f}"/>'
        )
    radii = np.full(len(plot.x), _SMALLEST)
    if plot.weights is not None:
        radii = np.maximum(_LARGEST * np.sqrt(plot.weights / plot.weights.max()), _SMALLEST)
    if plot.intervals is not None:
        bars = zip(frame.across(plot.x), *frame.down(plot.intervals.T), strict=True)
        drawn += [
            f'<path class="interval" d="M{x:.1f} {low:.1f}V{high:.1f}"/>' for x, low, high in bars
        ]
    points = zip(frame.across(plot.x), frame.down(plot.y), radii, strict=True)
    drawn += [
        f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        for x, y, radius in points
    ]
    middle = (frame.top + frame.bottom) / 2
    drawn.append(
        f'<text class="title" x="14" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle})">{escape(plot.y_title)}</text>'
    )
    label = f"{plot.title}: {plot.y_title} by {plot.x_title}, {len(plot.x):,} points"
    return frame.svg(label, "".join(drawn))


def histogram_plot(section: HistogramSection) -> str:
    """Draw bars; a part of each may be filled, for some of its items.

    Returns:
        SVG with the classes `axis`, `grid`, `bar` and `part`; a title names each bar.
    """
    size = len(section.counts)
    most = max(int(section.counts.max()), 1)
    frame = _BARS_FRAME(x_bounds=(0.0, float(size)), y_bounds=(0.0, 1.05 * most))
    edges = frame.across(np.arange(size + 1.0))
    # Half of the gap between two bars.
    gap = 1.5 if edges[1] - edges[0] > _NARROW_BAR else 0.5
    drawn = [frame.rows(lambda value: short(value) if value == int(value) else "")]
    parts = np.zeros(size, np.int64) if section.parts is None else section.parts
    for place, name in enumerate(section.names):
        count = int(section.counts[place])
        part = int(parts[place])
        title = f"{name}: {count:,} {section.noun}"
        if section.parts is not None:
            title += f", {part:,} {section.part_noun}"
        for kind, value in (("bar", count), ("part", part)):
            # One unit high at least, so that no value looks like none.
            top = min(float(frame.down(np.array(float(value)))), frame.bottom - 1.0)
            box = f"M{edges[place] + gap:.1f} {frame.bottom}V{top:.1f}H{edges[place + 1] - gap:.1f}"
            if value:
                drawn.append(
                    f'<path class="{kind}" d="{box}V{frame.bottom}z">'
                    f"<title>{escape(title)}</title></path>"
                )
    is_centered = len(section.ticks) == size
    places = (edges[:-1] + edges[1:]) / 2 if is_centered else edges
    # Every n-th tick, such that none touches the next.
    room = float(places[1] - places[0]) if size > 1 else np.inf
    needed = max(map(len, section.ticks)) * _DIGIT + _GAP
    stride = max(int(np.ceil(needed / room)), 1)
    ticks_of_places = list(zip(places.tolist(), section.ticks, strict=True))
    for x, text in ticks_of_places[::stride]:
        anchor = "end" if x + len(text) * _DIGIT / 2 > frame.width else "middle"
        drawn.append(
            f'<text x="{x:.1f}" y="{frame.bottom + 17}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )
    drawn.append(frame.axes(section.x_title))
    highest = section.names[int(section.counts.argmax())]
    label = (
        f"{section.title}: {int(section.counts.sum()):,} {section.noun} by {section.x_title}; "
        f"most of them at {highest}"
    )
    return frame.svg(label, "".join(drawn))


def line_plot(title: str, x_title: str, lines: Sequence[Line]) -> str:
    """Draw curves in one frame.

    Args:
        title: name of the measured value.
        x_title: name of the value of the horizontal axis.
        lines: the curves, at least one.

    Returns:
        SVG with the classes `axis`, `grid`, `curve` and `mark`, the kinds of lines, and `of-N` for
        run number N.
    """
    thin_lines = [thinned(line) for line in lines]
    frame = _CURVES_FRAME(
        x_bounds=_line_bounds(np.concatenate([line.x for line in thin_lines]), margin=0.0),
        y_bounds=_line_bounds(np.concatenate([line.y for line in thin_lines]), margin=0.05),
    )
    drawn = [frame.rows(short)]
    for place, value in frame.x_ticks():
        anchor = "end" if place > frame.right - 12 else "middle"
        drawn.append(
            f'<text x="{place:.1f}" y="{frame.bottom + 16}" text-anchor="{anchor}">'
            f"{short(value)}</text>"
        )
    drawn.append(frame.axes(x_title))
    drawn += [_curve(line, frame.across(line.x), frame.down(line.y)) for line in thin_lines]
    label = f"{title} by {x_title}: {', '.join(line.name for line in lines)}"
    return frame.svg(label, "".join(drawn), attributes=' class="lines"')


def ticks(low: float, high: float) -> np.ndarray:
    """Return about five round numbers from `low` to `high`.

    Their distance is 1, 2 or 5 times a power of 10.

    >>> ticks(0.0, 1.0).tolist()
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    rough = (high - low) / _TICKS
    power = 10.0 ** np.floor(np.log10(rough))
    steps = [factor * power for factor in (1.0, 2.0, 5.0, 10.0)]
    step = min(steps, key=lambda candidate: abs(candidate - rough))
    # A bound that misses a tick only by rounding still has it.
    first = np.ceil(low / step - 1e-9)
    last = np.floor(high / step + 1e-9)
    places: np.ndarray = np.round(np.arange(first, last + 1) * step, 10)
    return places + 0.0  # no -0


def thinned(line: Line) -> Line:
    """Reduce a curve to the means of at most 300 parts of equal length."""
    count = len(line.x)
    if count <= _MOST_POINTS:
        return line
    starts = np.arange(_MOST_POINTS) * count // _MOST_POINTS
    sizes = np.diff(np.append(starts, count))
    return dataclasses.replace(
        line, x=np.add.reduceat(line.x, starts) / sizes, y=np.add.reduceat(line.y, starts) / sizes
    )


def short(value: float) -> str:
    """Format the number of a tick: `0.25`, `2e-05`, `1.5k`, `200k`, `3M`."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _curve(line: Line, xs: np.ndarray, ys: np.ndarray) -> str:
    """Draw a curve, with marks where they do not hide it."""
    pairs = [f"{x:.1f} {y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
    classes = f"{line.kind} of-{line.owner}"
    drawn = f'<path class="curve {classes}" d="M{"L".join(pairs)}"/>'
    if len(pairs) > (_MOST_MARKS if line.kind == "eval" else 1):
        return drawn
    # A mark shows its numbers when it is pointed at.
    points = zip(xs.tolist(), ys.tolist(), line.x.tolist(), line.y.tolist(), strict=True)
    return drawn + "".join(
        f'<circle class="mark {classes}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
        f"<title>{escape(line.name)}, {step:,.0f}: {value:.4g}</title></circle>"
        for x, y, step, value in points
    )


def _point_bounds(values: np.ndarray, fixed: tuple[float, float] | None) -> tuple[float, float]:
    """Return bounds of an axis; those of a single value leave room on both sides."""
    low, high = fixed or (float(values.min()), float(values.max()))
    # Relative, so that it does not vanish beside a large value.
    margin = max(0.5, 1e-3 * abs(low))
    return (low, high) if high > low else (low - margin, high + margin)


def _line_bounds(values: np.ndarray, *, margin: float) -> tuple[float, float]:
    """Return bounds of an axis with a margin as a share of the range."""
    low = float(values.min())
    high = float(values.max())
    if high <= low:
        around = max(0.5 * abs(low), 1e-9)
        return low - around, high + around
    more = margin * (high - low)
    return low - more, high + more
