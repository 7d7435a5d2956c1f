"""Points in a plane as SVG that takes its colors from the page's style."""

from __future__ import annotations

from html import escape

import numpy as np

from bert_tf.tasks.base.report_sections import PlotSection

_WIDTH, _HEIGHT = 480, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 12, 46
_TICKS = 5
_SMALLEST, _LARGEST = 3.0, 15.0  # radius in units of the drawing


def scatter_plot(plot: PlotSection) -> str:
    """The SVG of a plot; its classes are `axis`, `grid`, `diagonal` and `point`."""
    x_low, x_high = _bounds(plot.x, plot.bounds)
    y_low, y_high = _bounds(plot.y, plot.bounds)

    def across(values: np.ndarray) -> np.ndarray:
        return _LEFT + (values - x_low) / (x_high - x_low) * (_WIDTH - _LEFT - _RIGHT)

    def down(values: np.ndarray) -> np.ndarray:
        return _HEIGHT - _BOTTOM - (values - y_low) / (y_high - y_low) * (_HEIGHT - _TOP - _BOTTOM)

    drawn = []
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    x_ticks, y_ticks = ticks(x_low, x_high), ticks(y_low, y_high)
    for place, value in zip(across(x_ticks), x_ticks, strict=True):
        drawn.append(f'<path class="grid" d="M{place:.1f} {_TOP}V{bottom}"/>')
        drawn.append(
            f'<text x="{place:.1f}" y="{bottom + 17}" text-anchor="middle">{value:g}</text>'
        )
    for place, value in zip(down(y_ticks), y_ticks, strict=True):
        drawn.append(f'<path class="grid" d="M{_LEFT} {place:.1f}H{right}"/>')
        drawn.append(
            f'<text x="{_LEFT - 7}" y="{place + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    drawn.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>')
    if plot.has_diagonal:
        ends = np.array([max(x_low, y_low), min(x_high, y_high)])
        xs, ys = across(ends), down(ends)
        drawn.append(
            f'<path class="diagonal" d="M{xs[0]:.1f} {ys[0]:.1f}L{xs[1]:.1f} {ys[1]:.1f}"/>'
        )
    for x, y, radius in zip(across(plot.x), down(plot.y), _radii(plot), strict=True):
        drawn.append(f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>')
    middle = (_TOP + bottom) / 2
    drawn.append(
        f'<text class="title" x="{(_LEFT + right) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">'
        f"{escape(plot.x_title)}</text>"
        f'<text class="title" x="14" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle})">{escape(plot.y_title)}</text>'
    )
    label = f"{plot.title}: {plot.y_title} by {plot.x_title}, {len(plot.x):,} points"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(drawn)}</svg>"
    )


def ticks(low: float, high: float) -> np.ndarray:
    """About five round numbers from `low` to `high`, whose steps are 1, 2 or 5 times a power of 10.

    >>> ticks(0.0, 1.0).tolist()
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    rough = (high - low) / _TICKS
    power = 10.0 ** np.floor(np.log10(rough))
    step = min((factor * power for factor in (1.0, 2.0, 5.0, 10.0)), key=lambda s: abs(s - rough))
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    found: np.ndarray = np.round(np.arange(first, last + 1) * step, 10)
    return found + 0.0  # no -0


def _bounds(values: np.ndarray, given: tuple[float, float] | None) -> tuple[float, float]:
    low, high = given or (float(values.min()), float(values.max()))
    margin = max(0.5, 1e-3 * abs(low))  # of one value, however large
    return (low, high) if high > low else (low - margin, high + margin)


def _radii(plot: PlotSection) -> np.ndarray:
    if plot.weights is None:
        return np.full(len(plot.x), _SMALLEST)
    radii: np.ndarray = _LARGEST * np.sqrt(plot.weights / plot.weights.max())
    return np.maximum(radii, _SMALLEST)
