"""Plots of a run's metrics as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

_WIDTH, _HEIGHT, _MARGIN = 640, 200, 50
_COLORS = {"train": "#4878a8", "eval": "#d1603d"}
_NOT_PLOTTED = ("step", "split", "time", "examples", "tokens")

Points = list[tuple[float, float]]


def plot_curves(lines: Iterable[dict[str, Any]]) -> str:
    """HTML with a plot of each metric against the step, the train lines' and the eval lines'.

    Args:
        lines: of metrics.jsonl.
    """
    curves: dict[str, dict[str, Points]] = {}
    for line in lines:
        for name, value in line.items():
            if name not in _NOT_PLOTTED and isinstance(value, int | float):
                points = curves.setdefault(name, {}).setdefault(line["split"], [])
                points.append((float(line["step"]), float(value)))
    return "".join(_plot(name, curves[name]) for name in curves)


def _plot(name: str, curves: dict[str, Points]) -> str:
    every = [point for points in curves.values() for point in points]
    first, last = min(x for x, _ in every), max(x for x, _ in every)
    low, high = min(y for _, y in every), max(y for _, y in every)

    def place(point: tuple[float, float]) -> str:
        x = _MARGIN + (point[0] - first) / ((last - first) or 1.0) * (_WIDTH - 2 * _MARGIN)
        y = _HEIGHT - 20 - (point[1] - low) / ((high - low) or 1.0) * (_HEIGHT - 40)
        return f"{x:.1f},{y:.1f}"

    drawn = ""
    for split, points in curves.items():
        color = _COLORS.get(split, "#222")
        path = " ".join(map(place, points))
        drawn += f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>'
        if split == "eval":
            drawn += "".join(
                '<circle cx="{}" cy="{}" r="3" fill="{}"/>'.format(*place(point).split(","), color)
                for point in points
            )
    labels = (
        f'<text x="0" y="24">{high:.4g}</text><text x="0" y="{_HEIGHT - 20}">{low:.4g}</text>'
        f'<text x="{_MARGIN}" y="{_HEIGHT - 2}">step {first:.0f}</text>'
        f'<text x="{_WIDTH - _MARGIN}" y="{_HEIGHT - 2}" text-anchor="end">{last:.0f}</text>'
    )
    splits = ", ".join(
        f'<span style="color:{_COLORS.get(split, "#222")}">{escape(split)}</span>'
        for split in curves
    )
    return (
        f"<h3>{escape(name)} ({splits})</h3>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" font-size="11">{drawn}{labels}'
        "</svg>"
    )
