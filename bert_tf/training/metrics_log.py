"""metrics.jsonl of a run, and the trackers that get its lines."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.errors import InputError
from bert_tf.base.files import naming_file, write_text_atomically
from bert_tf.config.registries import TENSORBOARD
from bert_tf.training.tracking.registry import TRACKERS
from bert_tf.training.tracking.tracker import SPLITS, TrackedRun, TrackerSender

Line = dict[str, Any]


def read_metrics(path: Path) -> list[Line]:
    """Lines of a metrics.jsonl, if there is one, but for a half-written last line.

    Raises InputError if another line is not a JSON object with `step` and `split`.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    metrics = []
    for number, text in enumerate(lines[:-1], start=1):  # what follows the last newline is partial
        try:
            line = json.loads(text)
            if line["split"] not in SPLITS or not isinstance(line["step"], int):
                raise ValueError("unknown split or step")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}:{number}: not a line of metrics ({error}); "
                "delete the line, or start again with --overwrite"
            ) from None
        metrics.append(line)
    return metrics


class MetricsLog:
    """Writes every line to metrics.jsonl and its numbers to trackers.

    A line holds `step`, `split` ("train" or "eval"), `time` (seconds of training so far), and
    numbers by name. A tracker that fails costs a warning, not the run. `keep_until` is the newest
    step of each split whose lines stay; later ones, other splits, and a half-written last line are
    removed.
    """

    def __init__(
        self,
        run_directory: Path,
        *,
        keep_until: Mapping[str, int],
        warn: Callable[[str], None],
        trackers: Sequence[str] = (TENSORBOARD,),
        name: str = "",
        settings: Mapping[str, Any] | None = None,
    ):
        self._path = run_directory / "metrics.jsonl"
        kept = [
            line
            for line in read_metrics(self._path)
            if line["step"] <= keep_until.get(line["split"], -1)
        ]
        write_text_atomically(self._path, "".join(json.dumps(line) + "\n" for line in kept))
        self._stream = self._path.open("a", encoding="utf-8")
        run = TrackedRun(directory=run_directory, name=name, settings=settings or {}, lines=kept)
        self._trackers = [
            TrackerSender(
                tracker, functools.partial(TRACKERS[tracker].open, run), lines=kept, warn=warn
            )
            for tracker in dict.fromkeys(trackers)
        ]

    def write(self, line: Line) -> None:
        with naming_file(self._path):
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()
        for tracker in self._trackers:
            tracker.write(line)

    def close(self, *, is_finished: bool = True) -> None:
        """Closes the file and ends trackers; `is_finished`: whether the run has all its steps."""
        with naming_file(self._path):
            os.fsync(self._stream.fileno())
            self._stream.close()
        for tracker in self._trackers:
            tracker.close(is_finished=is_finished)
