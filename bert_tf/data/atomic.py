"""Files and folders that appear whole or not at all: written aside, then renamed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BESIDE = re.compile(r"\.(.+)\.\d+\.(partial|before)")


@contextmanager
def replacing_file(path: str | Path) -> Iterator[Path]:
    """Yields a path beside `path` to write to; it takes the place of `path` if nothing is raised.

    The parent folders are made. On an exception the partial file is removed.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = _beside(target, "partial")
    try:
        yield aside
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def replacing_directory(path: str | Path) -> Iterator[Path]:
    """Yields an empty folder beside `path`; it takes the place of `path` if nothing is raised."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = _beside(target, "partial")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        yield aside
        if target.exists():
            before = _beside(target, "before")
            shutil.rmtree(before, ignore_errors=True)  # of a killed process with this number
            target.replace(before)
            aside.replace(target)
            shutil.rmtree(before)
        else:
            aside.replace(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def remove_leftovers(folder: str | Path) -> None:
    """Removes what killed processes left beside the folders they wrote with `replacing_directory`.

    Where one was killed between the two renames, the old folder is put back. Only for a `folder`
    that no other process writes to.
    """
    for path in list(Path(folder).glob(".*")):
        match = _BESIDE.fullmatch(path.name)
        if match is None or not path.is_dir():
            continue
        target = path.with_name(match[1])
        if match[2] == "before" and not target.exists():
            path.rename(target)
        else:
            shutil.rmtree(path)


def write_text_atomically(path: str | Path, text: str) -> None:
    """Writes UTF-8 text so that readers see the old file or the whole new one."""
    with replacing_file(path) as aside:
        aside.write_text(text, encoding="utf-8")


def _beside(target: Path, kind: str) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.{kind}")
