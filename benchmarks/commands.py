"""Whole commands, as users run them, timed."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_BERT_PIPELINE = "from pipeline.cli.main import main; main()"


def bert_pipeline(*arguments: object) -> list[str]:
    """Return the command line of `bert-pipeline` from this source tree."""
    return [sys.executable, "-c", _BERT_PIPELINE, *map(str, arguments)]


def timed(command: list[str], tree: Path | None = None) -> tuple[float, float]:
    """Seconds of wall clock and of processor time of a process, run to its end.

    Args:
        command: to run.
        tree: source tree that Python imports from; None for this one.

    Raises:
        SystemExit: it failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, cwd=tree or _ROOT, capture_output=True, text=True)
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
