"""What a tracker gets of a run, and what it does with it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from bert_tf.base.files import write_text_atomically

FOLDER = "tracking"
SPLITS = ("train", "eval")
_NOT_NUMBERS = ("step", "split", "time")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrackedRun:
    """A run as it is when a process starts or resumes it.

    Attributes:
        directory: of the run, on this machine.
        name: for people.
        settings: of its config, JSON values by key.
        lines: of metrics.jsonl, which the run resumes after; [] of a new run.
    """

    directory: Path
    name: str
    settings: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]

    @property
    def folder(self) -> Path:
        """Where trackers keep what they need to continue, and files of their own."""
        return self.directory / FOLDER

    def read_state(self, tracker: str) -> dict[str, Any]:
        """What `write_state` wrote last; {} where nothing is."""
        path = self._state_path(tracker)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def write_state(self, tracker: str, state: Mapping[str, Any]) -> None:
        """Keeps JSON values for the process that resumes the run, such as the tracker's id."""
        write_text_atomically(self._state_path(tracker), json.dumps(state) + "\n")

    def _state_path(self, tracker: str) -> Path:
        return self.folder / f"{tracker}.json"


class Tracker(Protocol):
    """An open run of a tracker.

    The module of one has a function `open_tracker(run: TrackedRun) -> Tracker`, which continues the
    tracker's run that it opened for the same directory before. Any exception means that the tracker
    cannot be reached, and the same is tried again later.
    """

    def newest_steps(self) -> Mapping[str, int]:
        """The newest step that it has of each split; lines up to there are not written again."""

    def write(self, line: Mapping[str, Any], seconds: float) -> None:
        """Adds the numbers of a line of metrics.jsonl.

        Args:
            line: with `step`, `split` ("train" or "eval") and numbers by name.
            seconds: since 1970, when the line was logged.
        """

    def close(self, *, is_finished: bool) -> None:
        """Ends the process's work on the run, whether or not it has all its steps."""


def numbers(line: Mapping[str, Any]) -> dict[str, float]:
    """What a line measures, by name."""
    return {name: value for name, value in line.items() if name not in _NOT_NUMBERS}


def named_by_split(line: Mapping[str, Any]) -> dict[str, float]:
    """The same as `train/loss`, `eval/loss`, for trackers that keep splits apart by names."""
    return {f"{line['split']}/{name}": value for name, value in numbers(line).items()}
