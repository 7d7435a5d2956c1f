"""The progress of a scoring job, from the files that its workers write.

Blocks that an interrupted run finished count as well, and workers of any runner share the folder,
so the files are all that is needed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.base.wording import quantity
from pipeline.beam.progress import watching
from pipeline.scoring.plan import ScoringPlan

_SECONDS = 1.0


@contextmanager
def showing_progress(
    plan: ScoringPlan, console: Console, *, label: str = "scoring"
) -> Iterator[None]:
    """Shows rows done, rows in total and rows per second while the block runs."""
    watcher = ProgressWatcher(plan, label=label)
    with watching(console, lambda: watcher.line(time.monotonic()), seconds=_SECONDS):
        yield


class ProgressWatcher:
    """Counts rows by the files in a plan's folder.

    Args:
        plan: the job.
        label: what is done to the rows.
    """

    def __init__(self, plan: ScoringPlan, *, label: str = "scoring"):
        self._plan = plan
        self._label = label
        self._known: set[str] = set()
        self._finished_rows = 0
        self._tables: dict[str, int] = {}
        self._start: tuple[float, int] | None = None

    def line(self, now: float) -> str | None:
        """What to show, None before the first row.

        Args:
            now: seconds on any clock that only goes forward.
        """
        running = 0
        names: set[str] = set()
        with suppress(FileNotFoundError):  # the folder is gone: the workers report that
            names.update(os.listdir(self._plan.parts))  # noqa: PTH208
        # There are three files per block: only names are listed, and each file is read once.
        for name in names - self._known:
            if name.endswith(".progress") and _done_name(name) in names:
                continue  # finished, and about to be removed
            path = self._plan.parts / name
            with suppress(FileNotFoundError, ValueError):  # taken away by a worker meanwhile
                if name.endswith(".progress"):
                    running += int(path.read_text())
                    continue
                if name.endswith(".done.json"):
                    self._finished_rows += _finished_rows(path)
                elif name.startswith("table-"):
                    self._tables[name] = json.loads(path.read_text())["rows_in"]
                self._known.add(name)
        done = self._finished_rows + running
        if not done:
            return None
        if self._start is None:
            self._start = (now, done)
        seconds, rows = now - self._start[0], done - self._start[1]
        all_known = len(self._tables) == len(self._plan.tables)
        total = sum(self._tables.values())
        rows_done = f"{done:,} of {quantity(total, 'row')}" if all_known else quantity(done, "row")
        speed = f", {rows / seconds:,.1f} rows/s" if rows else ""
        return f"{self._label}: {rows_done}{speed}"


def _done_name(progress: str) -> str:
    return progress.replace("block-", "part-").replace(".progress", ".done.json")


def _finished_rows(path: Path) -> int:
    done = json.loads(path.read_text())
    return done["rows_out"] + sum(done["rejected"].values())
