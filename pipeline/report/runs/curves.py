"""The metrics of runs by step, a plot for each metric with all runs that have it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np

from bert_tf.pretraining.findings import UNIGRAM_ENTROPY
from bert_tf.tasks.base.report_sections import TableSection
from pipeline.report.line_plot import Line, LineKind
from pipeline.report.runs.run import Run

_OF_LINE = ("step", "split", "time", "phase", "examples", "tokens")
_COMPARED_WITH_ENTROPY = "mlm_loss"
_GROUPS = {
    "Optimization": ("learning_rate", "gradient_norm"),
    "Speed": ("examples_per_second", "tokens_per_second", "mfu"),
}
_FIRST_GROUP = "Loss and metrics"
_KINDS: tuple[LineKind, ...] = ("train", "eval")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plot:
    """A metric by step.

    Attributes:
        name: as in metrics.jsonl.
        lines: its curves.
        table: their first, lowest, highest and last values.
    """

    name: str
    lines: Sequence[Line]
    table: TableSection


def run_plots(runs: Sequence[Run]) -> dict[str, list[Plot]]:
    """The plots of runs by group: losses and metrics, optimization, speed.

    Numbers that are not finite are left out.
    """
    names = dict.fromkeys(
        name
        for run in runs
        for line in sorted(run.lines, key=lambda line: line["split"] != "train")
        for name, value in line.items()
        if name not in _OF_LINE and _is_number(value)
    )
    groups: dict[str, list[Plot]] = {_FIRST_GROUP: [], **{group: [] for group in _GROUPS}}
    for name in names:
        if name == UNIGRAM_ENTROPY:
            continue
        lines = [line for number, run in enumerate(runs) for line in _lines(run, number, name)]
        group = next((key for key, of in _GROUPS.items() if name in of), _FIRST_GROUP)
        groups[group].append(Plot(name=name, lines=lines, table=_numbers(name, lines)))
    return {group: plots for group, plots in groups.items() if plots}


def _lines(run: Run, number: int, name: str) -> Iterator[Line]:
    for kind in _KINDS:
        line = _line(run, number, name, kind, kind, f"{run.name}, {kind}")
        if line is not None:
            yield line
    if name == _COMPARED_WITH_ENTROPY:
        level = _line(run, number, UNIGRAM_ENTROPY, "eval", "level", f"{run.name}, frequencies")
        if level is not None:
            yield level


def _line(run: Run, number: int, name: str, split: str, kind: LineKind, called: str) -> Line | None:
    points = [
        (line["step"], line[name])
        for line in run.lines
        if line["split"] == split and _is_number(line.get(name))
    ]
    if not points:
        return None
    steps, values = np.array(points, float).T
    if kind == "level":  # from the first step on, so that one evaluation makes a line too
        first = min(line["step"] for line in run.lines)
        steps, values = np.append(float(first), steps), np.append(values[0], values)
    return Line(owner=number, name=called, kind=kind, x=steps, y=values)


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)  # type: ignore[arg-type]


def _numbers(name: str, lines: Sequence[Line]) -> TableSection:
    return TableSection(
        title=f"{name} in numbers",
        columns=(
            ("curve", "text"),
            ("first", "number"),
            ("lowest", "number"),
            ("highest", "number"),
            ("last", "number"),
            ("at step", "count"),
        ),
        rows=[
            [line.name, *(float(v) for v in (line.y[0], line.y.min(), line.y.max(), line.y[-1])),
             int(line.x[-1])]
            for line in lines
        ],
    )  # fmt: skip
