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
        """Return the lines for IPython: the message, or the traceback if it is wanted."""
        if os.environ.get("BERT_PIPELINE_TRACEBACK"):
            return traceback.format_exception(self)
        return [f"{type(self).__name__}: {self}"]


# Why a row cannot be used: the reason, and the value at fault, or "".
Fault = tuple[str, str]


class InputError(BertPipelineError):
    """The content of an input is unusable: empty, damaged, of the wrong format (exit code 1)."""


class NoRowsError(InputError):
    """A table has no rows, though it may name its columns (exit code 1).

    Attributes:
        header, columns: see `TableBlock`.
    """

    header: Any = None
    columns: tuple[str, ...] = ()


class RowsRejected(InputError):
    """The rest of a file cannot be used after rows of it were rejected (exit code 1).

    Args:
        message: for the user.
        rejects: all rejects of the file; () if they were not kept.
    """

    def __init__(self, message: str, rejects: Sequence[Any] = ()):
        super().__init__(message)
        self.rejects = rejects


class UsageError(BertPipelineError):
    """The request cannot be met (exit code 2).

    For instance a missing file, a wrong flag, or a config other than that of the existing output.
    """

    exit_code = 2


class RunnerFailed(BertPipelineError):
    """The runner failed, not the job: workers, memory, storage; work is kept (exit code 1)."""


class GraphWritten(BertPipelineError):
    """The job's graph was written for others to submit; the job is not done (exit code 0)."""

    exit_code = 0


def missing_folder_error(path: str | Path, what: str) -> UsageError:
    """Return the error for a path that is not the expected folder.

    Args:
        path: the path.
        what: name of the expected folder, such as `model directory`.
    """
    if Path(path).exists():
        return UsageError(f"{path}: is a file; expected a {what}")
    return UsageError(f"{path}: no such {what}; check the path")


def are_installed(packages: Iterable[str]) -> bool:
    """Return whether packages can be imported, by import name, without importing them."""
    return all(importlib.util.find_spec(package) is not None for package in packages)


def check_packages(request: str, packages: Iterable[str], *, extra: str, instead: str = "") -> None:
    """Check that packages are installed, without importing them.

    Args:
        request: the request that needs them, such as `--engine openvino`.
        packages: import names.
        extra: the extra of this package that installs them.
        instead: an alternative for the user; "" for none.

    Raises:
        UsageError: one is not installed.
    """
    missing = [package for package in packages if not are_installed([package])]
    if missing:
        cure = f"pip install 'bert-pipeline[{extra}]'" + (f", or {instead}" if instead else "")
        raise UsageError(f"{request}: needs {' and '.join(missing)}, not installed here; {cure}")


class ConfigError(UsageError):
    """Faults of a configuration, all reported at once.

    Args:
        faults: a line for each fault, with its place, what is allowed and what to do.
    """

    def __init__(self, faults: list[str]):
        self.faults = list(faults)
        super().__init__("\n".join(self.faults))


class TooManyRejects(BertPipelineError):
    """More rows were rejected than allowed, so the job ended before its work (exit code 3)."""

    exit_code = 3


_EXIT_CODE_OF_SIGNALS = 128  # shells add the number of the signal to it


class StoppedEarly(BertPipelineError):
    """A signal stopped the job and the work so far is saved; the message says how to resume.

    The exit code is that of shells, 130 for Ctrl-C and 143 for SIGTERM, so that `train && finetune`
    does not continue with half a model.

    Args:
        message: for the user.
        signal_number: number of the signal.
    """

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = _EXIT_CODE_OF_SIGNALS + signal_number


@contextmanager
def handling_signals(
    handle: Callable[[signal.Signals, Callable[[], None]], None],
) -> Iterator[None]:
    """Call `handle` for SIGTERM and SIGINT inside the block; does nothing in other threads.

    A signal that C code handles is left to it, because Python could not restore its handler.

    Args:
        handle: called with the signal, and a function that restores the former handlers. They are
            also restored at the end of the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    before = {number: handler for number, handler in handlers.items() if handler is not None}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, lambda number, frame: handle(signal.Signals(number), restore))
    try:
        yield
    finally:
        restore()
