"""Failures whose message is meant for the user and whose type decides the exit code."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


class BertPipelineError(Exception):
    """A job could not be done; the message says what was expected and what to do (exit code 1)."""

    exit_code = 1


class InputError(BertPipelineError):
    """The content of an input is unusable: empty, damaged, of the wrong format (exit code 1)."""


class NoRowsError(InputError):
    """A table has no rows, though it may name its columns (exit code 1).

    Attributes:
        header, columns: of the table, as of a `TableBlock`.
    """

    header: Any = None
    columns: tuple[str, ...] = ()


class RowsRejected(InputError):
    """What is left of a file cannot be used, and rows of it were rejected (exit code 1).

    Args:
        message: begins with the reasons for which rows were rejected.
        rejects: all of them, for the file of rejects; none where they were not kept.
    """

    def __init__(self, message: str, rejects: Sequence[Any] = ()):
        super().__init__(message)
        self.rejects = rejects


class UsageError(BertPipelineError):
    """The command was asked for something impossible: a missing file, a wrong column or flag,
    an output made with another configuration (exit code 2)."""

    exit_code = 2


class RunnerFailed(BertPipelineError):
    """What a job runs on failed, not the job: a lost worker, memory, shared storage (exit code 1).
    Work that was finished is kept."""


class GraphWritten(BertPipelineError):
    """The graph of a job was written for somebody else to submit; the job itself is not done (exit
    code 0). Work that is finished by then is found by the command that finishes the job."""

    exit_code = 0


def no_folder(path: str | Path, what: str) -> UsageError:
    """The error for a path that is not the folder it should be.

    Args:
        path: as it was given.
        what: what was expected, in the singular: `model directory`.
    """
    if Path(path).exists():
        return UsageError(f"{path}: is a file; expected a {what}")
    return UsageError(f"{path}: no such {what}; check the path")


def are_installed(packages: Iterable[str]) -> bool:
    """Whether packages are there; imports none of them."""
    return all(importlib.util.find_spec(package) is not None for package in packages)


def check_packages(asked: str, packages: Iterable[str], *, extra: str, instead: str = "") -> None:
    """Checks that packages are there, before a job begins; imports none of them.

    Args:
        asked: what needs them, as it was asked for: `--engine openvino`.
        packages: by the names that they are imported by.
        extra: the extra of this package that installs them.
        instead: what else can be done.

    Raises:
        UsageError: one is missing.
    """
    missing = [package for package in packages if not are_installed([package])]
    if missing:
        cure = f"pip install 'bert-pipeline[{extra}]'" + (f", or {instead}" if instead else "")
        raise UsageError(f"{asked}: needs {' and '.join(missing)}, not installed here; {cure}")


class ConfigError(UsageError):
    """One or more faults in a configuration, all reported at once.

    Args:
        faults: one line per fault, each naming its place, what is allowed and what to do.
    """

    def __init__(self, faults: list[str]):
        self.faults = list(faults)
        super().__init__("\n".join(self.faults))


class TooManyRejects(BertPipelineError):
    """More rows were rejected than the user allows, so the job ended before its work (exit code
    3)."""

    exit_code = 3


class StoppedEarly(BertPipelineError):
    """A signal stopped the job and the work so far is saved; the message says how to resume.

    The exit code is the one that shells give to processes that such a signal ended, 130 for Ctrl-C
    and 143 for SIGTERM, so that `train && finetune` does not continue with half a model.

    Args:
        message: for the user.
        signal_number: of the signal.
    """

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = 128 + signal_number
