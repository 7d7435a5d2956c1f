"""Failures whose message is for the user and whose type decides the exit code; signals."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class BertPipelineError(Exception):
    """A job could not be done; the message says what was expected and what to do (exit code 1)."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the message, as commands do, unless a traceback is wanted."""
        if os.environ.get("BERT_PIPELINE_TRACEBACK"):
            return traceback.format_exception(self)
        return [f"{type(self).__name__}: {self}"]


Fault = tuple[str, str]  # why a row cannot be used: the reason, and the value found, if any


class InputError(BertPipelineError):
    """The content of an input is unusable: empty, damaged, of the wrong format (exit code 1)."""


class NoRowsError(InputError):
    """A table has no rows, though it may name its columns (exit code 1)."""

    header: Any = None  # of the table, as of a `TableBlock`
    columns: tuple[str, ...] = ()  # of the table, as of a `TableBlock`


class RowsRejected(InputError):
    """The rest of a file cannot be used after rows of it were rejected (exit code 1).

    `rejects` are all rejects of the file, or none if they were not kept.
    """

    def __init__(self, message: str, rejects: Sequence[Any] = ()):
        super().__init__(message)
        self.rejects = rejects


class UsageError(BertPipelineError):
    """The request cannot be met: a missing file, a wrong flag, another config (exit code 2)."""

    exit_code = 2


class RunnerFailed(BertPipelineError):
    """The runner failed, not the job: workers, memory, storage; work is kept (exit code 1)."""


class GraphWritten(BertPipelineError):
    """The job's graph was written for others to submit; the job is not done (exit code 0)."""

    exit_code = 0


def no_folder(path: str | Path, what: str) -> UsageError:
    """Make the error for a path that is not the folder it should be, say a `model directory`."""
    if Path(path).exists():
        return UsageError(f"{path}: is a file; expected a {what}")
    return UsageError(f"{path}: no such {what}; check the path")


def are_installed(packages: Iterable[str]) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)


def check_packages(asked: str, packages: Iterable[str], *, extra: str, instead: str = "") -> None:
    """Raise UsageError if a package, by import name, is not installed, without importing any.

    `asked` is the request that needs them (`--engine openvino`), `extra` the extra that installs
    them, `instead` an alternative for the user.
    """
    missing = [package for package in packages if not are_installed([package])]
    if missing:
        cure = f"pip install 'bert-pipeline[{extra}]'" + (f", or {instead}" if instead else "")
        raise UsageError(f"{asked}: needs {' and '.join(missing)}, not installed here; {cure}")


class ConfigError(UsageError):
    """Faults of a configuration, one line each, all reported at once."""

    def __init__(self, faults: list[str]):
        self.faults = list(faults)
        super().__init__("\n".join(self.faults))


class TooManyRejects(BertPipelineError):
    """More rows were rejected than allowed, so the job ended before its work (exit code 3)."""

    exit_code = 3


class StoppedEarly(BertPipelineError):
    """A signal stopped the job and the work so far is saved; the message says how to resume.

    The exit code is that of shells, 130 for Ctrl-C and 143 for SIGTERM.
    """

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = 128 + signal_number


@contextmanager
def handling_signals(
    handle: Callable[[signal.Signals, Callable[[], None]], None],
) -> Iterator[None]:
    """Calls `handle` with SIGTERM or SIGINT, and with a function that restores former handlers.

    They are restored at the end of the block, too. Does nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, lambda number, frame: handle(signal.Signals(number), restore))
    try:
        yield
    finally:
        restore()
