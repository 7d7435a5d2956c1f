"""The interface of trackers, and a thread that sends them lines while training continues."""

from __future__ import annotations

import dataclasses
import functools
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from bert_tf.base.files import write_text_atomically
from bert_tf.base.wording import quantity

FOLDER = "tracking"  # in the run directory, for the state and files of trackers
SPLITS = ("train", "eval")
_NOT_NUMBERS = ("step", "split", "time")  # keys of a line that are not metrics
# A failed tracker is usually a server that is away for a while.
_RETRY_SECONDS = 60.0
# A run that has ended shall not wait longer for a tracker.
_CLOSING_SECONDS = 30.0
Line = Mapping[str, Any]  # of metrics.jsonl


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrackedRun:
    """A run as a process starts or resumes it.

    Attributes:
        directory: run directory on this machine.
        name: name of the run, for people.
        settings: JSON values of the config by key.
        lines: lines of metrics.jsonl up to the checkpoint that is resumed; [] for a new run.
    """

    directory: Path
    name: str
    settings: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]

    @property
    def folder(self) -> Path:
        """Folder of the trackers: their files, and the state that they continue from."""
        return self.directory / FOLDER

    def read_state(self, tracker: str) -> dict[str, Any]:
        """Return the values of the last `write_state`; {} if there was none."""
        path = self._state_path(tracker)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def write_state(self, tracker: str, state: Mapping[str, Any]) -> None:
        """Keep JSON values for the process that resumes the run, such as the tracker's id."""
        write_text_atomically(self._state_path(tracker), json.dumps(state) + "\n")

    def _state_path(self, tracker: str) -> Path:
        return self.folder / f"{tracker}.json"


class Tracker(Protocol):
    """An open run of a tracker.

    The module of a tracker has a function `open_tracker(run: TrackedRun) -> Tracker`, which
    continues the tracker's run of the same directory. Any exception means that the tracker cannot
    be written to, and the same is tried again later.
    """

    def newest_steps(self) -> Mapping[str, int]:
        """Return the newest step of each split; lines up to there are not written again."""

    def write(self, line: Mapping[str, Any], seconds: float) -> None:
        """Write the numbers of a line of metrics.jsonl.

        Args:
            line: `step`, `split` ("train" or "eval"), `time`, and numbers by name.
            seconds: when the line was logged, in seconds since 1970.
        """

    def close(self, *, is_finished: bool) -> None:
        """End this process's work on the run.

        Args:
            is_finished: whether the run has done all its steps.
        """


def numbers(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of a line by name."""
    return {name: value for name, value in line.items() if name not in _NOT_NUMBERS}


def named_by_split(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of a line as `train/loss`, `eval/loss`, for trackers without splits."""
    return {f"{line['split']}/{name}": value for name, value in numbers(line).items()}


@dataclasses.dataclass(frozen=True)
class _End:
    """Mark in the queue after the last line."""

    is_finished: bool


class TrackerSender:
    """Sends lines to a tracker from its own thread, so that training never waits for it.

    Lines that cannot be sent are kept and tried again with a later line, `retry_seconds` after the
    failure at the earliest, and when the run ends.

    Args:
        name: name of the tracker, for messages.
        open_tracker: opens the tracker; called in the thread of the sender.
        lines: lines before the resume; those that the tracker lacks are sent first.
        warn: called once when the tracker fails, and at the end for missing lines; only by `write`
            and `close`, in their thread.
        retry_seconds: least time between a failure and the next attempt.
        closing_seconds: longest time that `close` waits.
    """

    def __init__(
        self,
        name: str,
        open_tracker: Callable[[], Tracker],
        lines: Iterable[Line],
        *,
        warn: Callable[[str], None],
        retry_seconds: float = _RETRY_SECONDS,
        closing_seconds: float = _CLOSING_SECONDS,
    ):
        self._name = name
        self._open = open_tracker
        self._warn = warn
        self._retry_seconds = retry_seconds
        self._closing_seconds = closing_seconds
        now = time.time()
        self._unsent: deque[tuple[Line, float]] = deque((line, now) for line in lines)
        self._tracker: Tracker | None = None
        self._newest: Mapping[str, int] = {}
        self._failure: str | None = None
        self._has_warned = False
        self._queue: SimpleQueue[tuple[Line, float] | _End] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"tracker-{name}", daemon=True)
        self._thread.start()

    def write(self, line: Line) -> None:
        """Queue one line; return at once."""
        self._queue.put((line, time.time()))
        self._warn_of_failure()

    def close(self, *, is_finished: bool) -> None:
        """Wait until everything is sent, for at most `closing_seconds`.

        Args:
            is_finished: whether the run has done all its steps.
        """
        self._queue.put(_End(is_finished))
        self._thread.join(self._closing_seconds)
        self._warn_of_failure()
        waiting = max(self._queue.qsize() - 1, 0)  # without the end mark, which is the last
        if unsent := len(self._unsent) + waiting:
            self._warn(
                f"{self._name}: {quantity(unsent, 'line')} of the run could not be sent; "
                "metrics.jsonl has them"
            )
        elif self._thread.is_alive():
            self._warn(f"{self._name}: did not finish within {self._closing_seconds:g} seconds")

    def _warn_of_failure(self) -> None:
        failure = self._failure
        if failure is not None and not self._has_warned:
            self._has_warned = True
            self._warn(
                f"{self._name}: cannot be written to ({failure}); training continues and missing "
                "entries will be retried"
            )

    def _work(self) -> None:
        end: _End | None = None
        while end is None:
            is_sent = self._try(self._send)
            retry_at = -float("inf") if is_sent else time.monotonic() + self._retry_seconds
            end = self._take(until=retry_at)
        self._try(self._send)
        if self._tracker is not None:
            self._try(functools.partial(self._tracker.close, is_finished=end.is_finished))

    def _take(self, until: float) -> _End | None:
        """Take at least one line, and more until `until`, a time of `time.monotonic`.

        Returns:
            The end mark, as soon as it comes; None if it is time to send.
        """
        while True:
            entry = self._queue.get()
            if isinstance(entry, _End):
                return entry
            self._unsent.append(entry)
            if time.monotonic() >= until:
                return None

    def _try(self, action: Callable[[], None]) -> bool:
        """Return whether the action succeeded; remember the first failure."""
        try:
            action()
        # Trackers are libraries that may raise anything, and must not stop the run.
        except (Exception, SystemExit) as error:
            words = str(error).strip() or type(error).__name__
            self._failure = self._failure or words.splitlines()[0][:200]
            return False
        return True

    def _send(self) -> None:
        if self._tracker is None:
            tracker = self._open()
            self._newest = tracker.newest_steps()
            self._tracker = tracker
        while self._unsent:
            line, seconds = self._unsent[0]
            if line["step"] > self._newest.get(line["split"], -1):
                self._tracker.write(line, seconds)
            self._unsent.popleft()
