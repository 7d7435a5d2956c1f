"""A loss curve made of characters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def read_curve(metrics: Path, *, split: str, key: str) -> tuple[list[int], list[float]]:
    """Steps and values of one key in a run's `metrics.jsonl`."""
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    rows = [line for line in lines if line.get("split") == split and key in line]
    return [row["step"] for row in rows], [row[key] for row in rows]


def draw_curve(
    steps: Sequence[int], values: Sequence[float], *, width: int = 60, height: int = 10
) -> list[str]:
    """Lines of a plot: one column a range of steps, at the mean of the values in it.

    >>> print("\\n".join(draw_curve([0, 1, 2], [3.0, 2.0, 1.0], width=3, height=3)))
       3.00 | *
       2.00 |  *
       1.00 |   *
            +----
             0 to 2 steps
    """
    if not steps:
        return []
    first, last = steps[0], steps[-1]
    columns: list[list[float]] = [[] for _ in range(width)]
    for step, value in zip(steps, values, strict=True):
        columns[round((width - 1) * (step - first) / max(last - first, 1))].append(value)
    means = [sum(column) / len(column) if column else None for column in columns]
    drawn = [mean for mean in means if mean is not None]
    low, high = min(drawn), max(drawn)
    scale = (height - 1) / (high - low) if high > low else 0.0
    grid = [[" "] * width for _ in range(height)]
    for column, mean in enumerate(means):
        if mean is not None:
            grid[round((high - mean) * scale)][column] = "*"
    lines = []
    for row, cells in enumerate(grid):
        value = high - row / scale if scale else high
        lines.append(f"{value:7.2f} | {''.join(cells)}".rstrip())
    return [*lines, " " * 8 + "+" + "-" * (width + 1), f"{'':9}{first} to {last} steps"]
