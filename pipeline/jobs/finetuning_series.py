"""The runs of a fine-tuning series: their settings, their table, and the best of them."""

from __future__ import annotations

import csv
import dataclasses
import re
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.files import replacing_directory, replacing_file
from bert_tf.base.wording import quantity, shown_setting
from bert_tf.config.sections import FinetuneConfig
from bert_tf.training.best_model import rank
from pipeline.outputs.job import JobRecord
from pipeline.outputs.manifest import rejects_path
from pipeline.report.document import REPORT

# Files of the best run that its series has too, so that it can be used like a run.
_FILES_OF_BEST = ("metrics.jsonl", "metrics.json", "predictions.jsonl", REPORT, "vocab.txt")
_KEYS_OF_BEST = ("task", "best_model", "stopped_early", "eval_rows", "baseline")
_UNSAFE = re.compile(r"[^\w.,=+-]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeriesRun:
    """A run of a series.

    Attributes:
        settings: values of the grid by key.
        path: of its run directory.
    """

    settings: dict[str, Any]
    seed: int
    path: Path
    manifest: dict[str, Any]

    @property
    def metrics(self) -> dict[str, float]:
        """Return the metrics of its best epoch."""
        best = self.manifest["metrics"]["best"]
        return {name: value for name, value in best.items() if name != "step"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Combination:
    """The runs with the same settings.

    Attributes:
        settings: values of the grid by key.
        runs: a run per seed.
    """

    settings: dict[str, Any]
    runs: tuple[SeriesRun, ...]

    def mean(self) -> dict[str, float]:
        return {name: statistics.fmean(values) for name, values in self._values().items()}

    def deviation(self) -> dict[str, float | None]:
        """Return the standard deviation of each metric over the seeds, with n - 1.

        It is None for a single seed.
        """
        return {
            name: statistics.stdev(values) if len(values) > 1 else None
            for name, values in self._values().items()
        }

    def _values(self) -> dict[str, list[float]]:
        return {name: [run.metrics[name] for run in self.runs] for name in _common(self.runs)}


def combinations(runs: Sequence[SeriesRun]) -> list[Combination]:
    """Group runs by their settings, in the order of their first run."""
    grouped: dict[str, list[SeriesRun]] = {}
    for run in runs:
        grouped.setdefault(named_settings(run.settings), []).append(run)
    return [Combination(settings=each[0].settings, runs=tuple(each)) for each in grouped.values()]


def best_of(combinations: Sequence[Combination], metric: str) -> tuple[Combination, SeriesRun]:
    """Return the settings with the best mean, and the best run with them; ties keep the order.

    Args:
        combinations: at least one.
        metric: that decides.
    """
    # Compared by the mean over seeds: the best single run of many is often luck.
    chosen = max(combinations, key=lambda each: rank(each.mean(), metric))
    return chosen, max(chosen.runs, key=lambda run: rank(run.metrics, metric))


def series_table(combinations: Sequence[Combination], names: Sequence[str]) -> list[str]:
    """Format mean and deviation of metrics by settings, a line each, with a heading.

    Args:
        combinations: settings and their runs.
        names: of the metrics.
    """
    cells = [["settings", "seeds", *names]]
    for each in combinations:
        mean, deviation = each.mean(), each.deviation()
        rows = [
            f"{mean[name]:.4f}" + ("" if deviation[name] is None else f" ± {deviation[name]:.4f}")
            for name in names
        ]
        cells.append([named_settings(each.settings) or "as given", str(len(each.runs)), *rows])
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def record_series(
    record: JobRecord, config: FinetuneConfig, combinations: list[Combination]
) -> bool:
    """Keep the best run of the settings with the best mean, and list all runs.

    Args:
        record: the job.
        config: of the series.
        combinations: the finished runs.

    Returns:
        Whether the best model is of use: better than a model that knows the labels only.
    """
    output = Path(config.output)
    chosen, best = best_of(combinations, config.selection_metric)
    runs = [run for each in combinations for run in each.runs]
    with replacing_directory(output / "best") as aside:
        shutil.copytree(best.path / "best", aside, dirs_exist_ok=True)
    for name in _FILES_OF_BEST:
        with replacing_file(output / name) as aside:
            shutil.copyfile(best.path / name, aside)
    with replacing_file(rejects_path(output)) as aside:
        shutil.copyfile(rejects_path(best.path), aside)
    names = [name for name in (*config.metrics, "loss") if name in chosen.mean()]
    _write_runs(output / "runs.csv", runs)
    _log_series(record.console, combinations, names)
    record.counts = {**best.manifest["counts"], "runs": len(runs)}
    record.metrics = {
        **best.manifest["metrics"],
        "mean": chosen.mean(),
        "deviation": chosen.deviation(),
    }
    record.extra = {
        **{key: best.manifest[key] for key in _KEYS_OF_BEST if key in best.manifest},
        "best_run": best.path.relative_to(output).as_posix(),
        "runs": [
            {
                "path": run.path.relative_to(output).as_posix(),
                "settings": run.settings,
                "seed": run.seed,
                "metrics": run.metrics,
            }
            for run in runs
        ],
    }
    record.made = [
        (
            str(output / "best"),
            f"the best of {quantity(len(runs), 'run')} by {config.selection_metric}: "
            f"{named_settings({**best.settings, 'seed': best.seed})}",
        ),
        (str(output / "runs.csv"), "settings, seed and metrics of every run"),
    ]
    baseline = best.manifest.get("baseline")
    return baseline is None or bool(baseline["is_better"])


def _log_series(
    console: Console, combinations: Sequence[Combination], names: Sequence[str]
) -> None:
    if len(combinations) == 1:
        for run in combinations[0].runs:
            measured = "  ".join(f"{name} {run.metrics[name]:.4f}" for name in names)
            console.info(f"  seed {run.seed}: {measured}")
    console.info("mean over the seeds, ± standard deviation:")
    console.info(*series_table(combinations, names))


def _write_runs(path: Path, runs: Sequence[SeriesRun]) -> None:
    names = _common(runs)
    with replacing_file(path) as aside, aside.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow([*runs[0].settings, "seed", *names])
        for run in runs:
            values = [run.metrics[name] for name in names]
            rows.writerow([*map(shown_setting, run.settings.values()), run.seed, *values])


def _common(runs: Sequence[SeriesRun]) -> list[str]:
    """Return the metrics that all runs have."""
    return [name for name in runs[0].metrics if all(name in run.metrics for run in runs)]


def run_folder(config: FinetuneConfig, settings: dict[str, Any], seed: int) -> Path:
    """Return the folder of a run of a series."""
    # Folders are named by their settings, so that a changed grid finds its finished runs again.
    grid = ",".join(f"{key}={shown_setting(value)}" for key, value in settings.items())
    return Path(config.output) / _UNSAFE.sub("_", grid) / f"seed-{seed}"


def named_settings(settings: dict[str, Any]) -> str:
    """Return settings as a user reads them, such as "epochs 3, seed 1"."""
    return ", ".join(f"{key} {shown_setting(value)}" for key, value in settings.items())
