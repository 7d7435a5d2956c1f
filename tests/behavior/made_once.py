"""Folders that many tests read, made by the first process of a run of pytest that asks for them."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that no test may change; processes that ask at once wait for one of them.

    Args:
        name: of the folder, the same for the same content in all files of tests.
        make: writes the folder, which does not exist.
    """
    folder = factory.getbasetemp() / "once" / name
    unfinished = folder.with_name(f"{name}.unfinished")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
            make(unfinished)
            unfinished.rename(folder)
    return folder
