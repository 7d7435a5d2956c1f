"""Memory and open files of a long command over time, and whether it slows down.

    python benchmarks/long_run.py --plot long-run.html -- train --data DATA --output RUN \\
        --size tiny --steps 1000000000 --set train.max_minutes=120
    python benchmarks/long_run.py --plot long-run.html -- preprocess --input 'corpus/*.txt' ...

Samples the command's process and those below it every ten seconds. Prints the fits of the second
half of the samples (growth per hour of resident memory, open files and processes), and for `train`
the processor seconds per step in each quarter of the run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

import numpy as np
from commands import bert_pipeline

from pipeline.report.plots import Line, line_plot

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STYLE = (
    "<!doctype html><style>svg{width:48%;font:11px sans-serif}"
    ".axis,.grid,.curve{fill:none;stroke:#bbb}.curve{stroke:#06c}</style>"
)
_NAMES = ("memory, bytes", "open files", "processes", "processor seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=float, default=10.0, help="seconds between samples")
    parser.add_argument("--plot", type=Path, help="page to write")
    parser.add_argument("command", nargs="+", help="after --: a command of bert-pipeline")
    options = parser.parse_args()
    process = subprocess.Popen(bert_pipeline(*options.command))
    run = Path(options.command[options.command.index("--output") + 1])
    start, samples = time.time(), []
    while process.poll() is None:
        samples.append((time.time() - start, last_step(run), *sample(process.pid)))
        time.sleep(options.every)
    seconds, steps, *columns = np.array(samples).T
    values, hours = np.array(columns).T, seconds / 3600
    half = len(hours) // 2
    for name, column in zip(_NAMES[:3], values.T, strict=False):
        slope = np.polyfit(hours[half:], column[half:], 1)[0] if len(hours) - half > 2 else np.nan
        print(
            f"{name}: {column[half:].min():,.0f} to {column[half:].max():,.0f} in the second half, "
            f"growth {slope:,.0f} per hour"
        )
    if steps[-1]:
        places = np.searchsorted(steps, np.linspace(steps[steps > 0][0], steps[-1], 5))
        spent = np.diff(values[places, 3]) / np.diff(steps[places])
        print(f"{steps[-1]:,.0f} steps; processor seconds of one in each quarter:", spent.round(4))
    if options.plot is not None:
        drawn = [
            line_plot(name, "hours", [Line(owner=0, name=name, kind="train", x=hours, y=column)])
            for name, column in zip(_NAMES, values.T, strict=True)
        ]
        options.plot.write_text("\n".join([_STYLE, *drawn]), encoding="utf-8")
    print(f"{hours[-1]:.2f} hours, exit code {process.returncode}")


def last_step(run: Path) -> int:
    """Return the step of the last line that `train` logged."""
    log = run / "metrics.jsonl"
    lines = log.read_text().splitlines() if log.is_file() else []
    return json.loads(lines[-1])["step"] if lines else 0


def sample(root: int) -> tuple[float, float, float, float]:
    """Values of `_NAMES`, summed over a process and its descendants."""
    memory = files = processes = seconds = 0.0
    for process in descendants(root):
        folder = Path(f"/proc/{process}")
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            pages = int((folder / "statm").read_text().split()[1])
            files += len(list((folder / "fd").iterdir()))
        except OSError:  # it ended
            continue
        memory += pages * _PAGE
        seconds += (int(fields[11]) + int(fields[12])) / _TICKS
        processes += 1
    return memory, files, processes, seconds


def descendants(process: int) -> list[int]:
    found = [process]
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            children = (thread / "children").read_text().split()
            found += [below for child in children for below in descendants(int(child))]
    except OSError:
        pass
    return found


if __name__ == "__main__":
    main()
