"""Write `metrics.jsonl` of a run, and send its lines to trackers."""

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

# A line of metrics.jsonl: `step`, `split`, `time`, and numbers by name.
Line = dict[str, Any]


def read_metrics(path: Path) -> list[Line]:
    """Read the lines of a metrics.jsonl; return [] if there is no such file.

    A half-written last line, which a killed process leaves behind, is skipped.

    Raises:
        InputError: another line is not a JSON object with `step` and `split`.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    metrics = []
    # Text after the last newline belongs to a line that was not written completely.
    for number, text in enumerate(lines[:-1], start=1):
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
    numbers by name. A tracker that fails causes a warning, and does not stop the run.

    Args:
        run_directory: directory of `metrics.jsonl`.
        keep_until: the last step of each split whose lines stay. Lines of later steps or other
            splits, and a half-written last line, are removed, because a resumed run writes them
            again.
        warn: called when a tracker fails.
        trackers: names from `TRACKERS`.
        name: name of the run for trackers.
        settings: values of the config by key, for trackers; None for none.

    Raises:
        InputError: a line of metrics.jsonl other than the last is damaged.
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
        """Append a line and flush it, so that a killed process loses none."""
        with naming_file(self._path):
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()
        for tracker in self._trackers:
            tracker.write(line)

    def close(self, *, is_finished: bool = True) -> None:
        """Close the file and end the trackers.

        Args:
            is_finished: whether the run has done all its steps.
        """
        with naming_file(self._path):
            os.fsync(self._stream.fileno())
            self._stream.close()
        for tracker in self._trackers:
            tracker.close(is_finished=is_finished)
