"""Run directories, finished or not, and their curves as HTML.

Each run has a color, and a box in the key that hides its curves by CSS (`:has`), since a page runs
no script.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.section import plain_values
from bert_tf.config.sections import FinetuneConfig, TrainConfig
from bert_tf.pretraining.findings import UNIGRAM_ENTROPY
from bert_tf.tasks.base.report_sections import TableSection
from bert_tf.training.metrics_log import read_metrics
from pipeline.outputs.job_folder import JobFolder
from pipeline.outputs.manifest import check_files
from pipeline.report.artifact import section_of
from pipeline.report.document import REPORT, folded, style_sheet, table_html
from pipeline.report.plots import Line, LineKind, line_plot

MOST_RUNS = 8
_COMMANDS = (TrainConfig.section_name, FinetuneConfig.section_name)
_BEGIN = "</h1>\n"
_END = "</main></body></html>"
TRAINING = '<section class="training">'
"""The beginning of the curves of training, the last part of a report."""
# Elements that a report of another origin could have: a browser would follow or draw them.
FOREIGN = re.compile(
    r"<(?!/?(?:b|circle|d[dlt]|details|div|figure|g|h[2-4]|i|li|mark|ol|p|path|section|small|span|summary"
    r"|svg|table|tbody|t[dhr]|text|thead|title|wbr)[ >/])[^<>]{0,40}"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A run on the page.

    Attributes:
        name: of its folder; if folders have the same name, the path from their common folder.
        path: of its folder.
        command: `train` or `finetune`.
        config: the settings of its section.
        manifest: None until the run is finished.
        lines: of `metrics.jsonl`.
    """

    name: str
    path: Path
    command: str
    config: dict[str, Any]
    manifest: dict[str, Any] | None
    lines: Sequence[dict[str, Any]]

    @property
    def is_pretraining(self) -> bool:
        """Return whether the run trained masked language modeling."""
        return self.command == TrainConfig.section_name

    def evaluation_html(self) -> str | None:
        """Return the body of its evaluation page, None without one.

        Raises:
            InputError: the page was edited, or holds elements that no report has.
        """
        page = self.path / REPORT
        if self.manifest is None or not page.is_file():
            return None
        check_files(self.path, {REPORT})
        _, _, content = page.read_text(encoding="utf-8").partition(_BEGIN)
        content = content.rpartition(_END)[0]
        evaluation, training, _ = content.partition(TRAINING)
        if training:  # left out, since the page of runs has the curves of all runs
            content = f"{evaluation}</div>"
        foreign = FOREIGN.search(content)
        if foreign:
            raise InputError(f"{page}: holds {foreign[0]}, which no report has; evaluate again")
        return content or None


def read_runs(paths: Sequence[str]) -> list[Run]:
    """Read runs in order.

    Args:
        paths: of their folders.

    Returns:
        The runs, under names that differ.

    Raises:
        UsageError: there are too many paths, one is there twice, or is no run with metrics.
        InputError: a manifest or the metrics are damaged.
    """
    if len(paths) > MOST_RUNS:
        raise UsageError(
            f"{len(paths)} runs: a page has colors for {MOST_RUNS}; give fewer at once"
        )
    folders = [Path(path).resolve() for path in paths]
    for path, folder in zip(paths, folders, strict=True):
        if folders.count(folder) > 1:
            raise UsageError(f"{path}: is given twice; name each run once")
    names = [folder.name for folder in folders]
    if len(set(names)) < len(names):
        common = Path(os.path.commonpath(folders))
        names = [
            folder.name if folder == common else folder.relative_to(common).as_posix()
            for folder in folders
        ]
    return [_read_run(path, name) for path, name in zip(paths, names, strict=True)]


def _read_run(path: str, name: str) -> Run:
    """Read a run; an unfinished one has its command and config in its marker."""
    folder = Path(path)
    if not folder.is_dir():
        fault = "is a file" if folder.exists() else "no such folder"
        raise UsageError(f"{path}: {fault}; give the output of train or finetune")
    job = JobFolder.at(path)
    manifest = job.manifest
    if manifest is not None:
        command = manifest.get("command", "")
        config = manifest.get("config", {})
    else:
        command, config = next(iter((job.marker or {}).items()), ("", {}))
        section = section_of(command, config)
        if section is not None:
            config = plain_values(section, config)
    if command not in _COMMANDS:
        raise UsageError(
            f"{path}: is not a run; give the output of train or finetune "
            "(bert-pipeline inspect --html describes other outputs)"
        )
    lines = read_metrics(folder / "metrics.jsonl")
    if not lines:
        raise UsageError(f"{path}: has no metrics yet; wait until the run has made some steps")
    return Run(
        name=name, path=folder, command=command, config=config, manifest=manifest, lines=lines
    )


_OF_LINE = ("step", "split", "time", "phase", "examples", "tokens")
_COMPARED_WITH_ENTROPY = "mlm_loss"
_GROUPS = {
    "Optimization": ("learning_rate", "gradient_norm"),
    "Speed": ("examples_per_second", "tokens_per_second", "mfu"),
}
_FIRST_GROUP = "Loss and metrics"
_KINDS: dict[str, LineKind] = {"train": "train", "eval": "eval", "frequencies": "level"}
COLORS = (  # on the light and on the dark ground, at a contrast of 4.5 or more
    ("#1f5fa8", "#6ba7ec"), ("#b3450c", "#f59f6b"), ("#1b7a43", "#63c78b"),
    ("#8a2b8a", "#d79be0"), ("#806000", "#d9b44a"), ("#0b7285", "#4fc3d4"),
    ("#c2255c", "#f48fb1"), ("#495057", "#b8c0cc"),
)  # fmt: skip


def plots_style(runs: int) -> str:
    """Return the CSS of `plots_html`, which sets `--run` to the color of `of-N`."""
    return style_sheet("runs") + "".join(
        f".of-{number} {{ --run: {light}; }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ .of-{number} {{ --run: {dark}; }} }}\n"
        f"main:has(#run-{number}:not(:checked)) svg .of-{number} {{ display: none; }}\n"
        for number, (light, dark) in enumerate(COLORS[:runs])
    )


def plots_html(runs: Sequence[Run]) -> str:
    """Return the key, and a section for each group of metrics; "" without runs."""
    if not runs:
        return ""
    return _key(runs) + "".join(starmap(_plots_html, _groups(runs).items()))


def training_html(folder: Path, metric: str | None) -> str:
    """Draw the loss of a run, and the metric that chose its model; empty without metrics."""
    lines = read_metrics(folder / "metrics.jsonl")
    run = Run(
        name=folder.name, path=folder, command="finetune", config={}, manifest=None, lines=lines
    )
    plots = ""
    for name in dict.fromkeys(("loss", metric)):
        curves = list(_lines(run, 0, name)) if name else []
        if name and curves:
            figure = f"<figure>{line_plot(name, 'step', curves)}</figure>"
            plots += f"<div><h3>{escape(name)}</h3>{figure}</div>"
    if not plots:
        return ""
    note = '<p class="note">Thin: training; thick with points: evaluation.</p>'
    return f'{TRAINING}<h2>Training</h2>{note}<div class="plots">{plots}</div></section>\n'


def _key(runs: Sequence[Run]) -> str:
    labels = "".join(
        f'<label class="of-{number}"><input type="checkbox" id="run-{number}" checked>'
        f"{escape(run.name)}</label>"
        for number, run in enumerate(runs)
    )
    has_level = any("unigram_entropy" in line for run in runs for line in run.lines)
    level = "; dashed: the unigram baseline" if has_level else ""
    note = f'<p class="note">Thin: training; thick with points: evaluation{level}.</p>'
    if len(runs) == 1:  # nothing to hide it from
        return f"{note}\n"
    return f'<fieldset class="key"><legend>Shown runs</legend>{labels}{note}</fieldset>\n'


def _plots_html(title: str, curves: Mapping[str, Sequence[Line]]) -> str:
    drawn = "".join(
        f"<div><h3>{escape(name)}</h3><figure>{line_plot(name, 'step', lines)}</figure>"
        f"{folded(f'{name} in numbers', table_html(_numbers(name, lines)))}</div>"
        for name, lines in curves.items()
    )
    return f'<section><h2>{title}</h2><div class="plots">{drawn}</div></section>\n'


def _groups(runs: Sequence[Run]) -> dict[str, dict[str, list[Line]]]:
    """Return curves by metric, in groups: losses and metrics, optimization, speed.

    Only finite values are drawn; a loss that is NaN ends its run and has no place on an axis.
    """
    names: dict[str, None] = {}
    for run in runs:
        training_first = sorted(run.lines, key=lambda line: line["split"] != "train")
        for line in training_first:
            of_line = [name for name, value in line.items() if _is_number(value)]
            names.update(dict.fromkeys(name for name in of_line if name not in _OF_LINE))
    groups: dict[str, dict[str, list[Line]]] = {name: {} for name in (_FIRST_GROUP, *_GROUPS)}
    for name in names:
        if name == UNIGRAM_ENTROPY:
            continue
        lines = [line for number, run in enumerate(runs) for line in _lines(run, number, name)]
        group = next((key for key, members in _GROUPS.items() if name in members), _FIRST_GROUP)
        groups[group][name] = lines
    return {group: curves for group, curves in groups.items() if curves}


def _lines(run: Run, number: int, name: str) -> Iterator[Line]:
    """Yield the curves of a metric of a run: training, evaluation, and a level to compare with."""
    curves = [(name, "train", "train"), (name, "eval", "eval")]
    if name == _COMPARED_WITH_ENTROPY:
        curves.append((UNIGRAM_ENTROPY, "eval", "frequencies"))
    for measured, split, called in curves:
        points = [
            (line["step"], line[measured])
            for line in run.lines
            if line["split"] == split and _is_number(line.get(measured))
        ]
        if not points:
            continue
        steps, values = np.array(points, float).T
        kind = _KINDS[called]
        if kind == "level":  # from the first step on, so that also one evaluation makes a line
            first = min(line["step"] for line in run.lines)
            steps = np.append(float(first), steps)
            values = np.append(values[0], values)
        yield Line(owner=number, name=f"{run.name}, {called}", kind=kind, x=steps, y=values)


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)  # type: ignore[arg-type]


def _numbers(name: str, lines: Sequence[Line]) -> TableSection:
    """Return a table of the curves, for those who cannot see them."""
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
            [
                line.name,
                float(line.y[0]),
                float(line.y.min()),
                float(line.y.max()),
                float(line.y[-1]),
                int(line.x[-1]),
            ]
            for line in lines
        ],
    )
