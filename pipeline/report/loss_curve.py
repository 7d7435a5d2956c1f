"""The loss curve of a run as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bert_tf.training.run.metrics_file import read_metrics


def loss_curve_lines(
    metrics_path: str | Path, *, metric: str = "loss", width: int = 60, height: int = 10
) -> list[str]:
    """Plots a metric of metrics.jsonl against the step.

    `*` is the mean of the train lines that fall into a column, `o` an eval line.

    Args:
        metrics_path: the file.
        metric: name in its lines.
        width, height: characters of the plotting area.

    Returns:
        Lines of text; [] with fewer than two train lines that have the metric.
    """
    points = {
        split: np.array(
            [
                (line["step"], line[metric])
                for line in read_metrics(Path(metrics_path))
                if line["split"] == split and metric in line
            ],
            dtype=float,
        ).reshape(-1, 2)
        for split in ("train", "eval")
    }
    if len(points["train"]) < 2:
        return []
    both = np.concatenate(list(points.values()))
    (first, lowest), (last, highest) = both.min(axis=0), both.max(axis=0)
    grid = np.full((height, width), " ")
    for split, mark in (("train", "*"), ("eval", "o")):
        steps, values = points[split][:, 0], points[split][:, 1]
        columns = np.rint((steps - first) / max(last - first, 1) * (width - 1)).astype(int)
        for column in np.unique(columns):
            value = values[columns == column].mean()
            row = round((highest - value) / max(highest - lowest, 1e-12) * (height - 1))
            grid[row, column] = mark
    labels = np.linspace(highest, lowest, height)
    lines = [f"{label:9.3f} |{''.join(row)}" for label, row in zip(labels, grid, strict=True)]
    axis = f"step {first:.0f}".ljust(width - len(f"{last:.0f}")) + f"{last:.0f}"
    legend = f"{metric}: * train" + ("  o eval" if len(points["eval"]) else "")
    return [legend, *lines, " " * 10 + "+" + "-" * width, " " * 11 + axis]
