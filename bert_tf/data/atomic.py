"""Files and folders that appear whole or not at all: written aside, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing_file(path: str | Path) -> Iterator[Path]:
    """Yields a path beside `path` to write to; it takes the place of `path` if nothing is raised.

    The parent folders are made. On an exception the partial file is removed.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}.partial")
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
    aside = target.with_name(f".{target.name}.{os.getpid()}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        yield aside
        if target.exists():
            before = target.with_name(f".{target.name}.{os.getpid()}.before")
            target.replace(before)
            aside.replace(target)
            shutil.rmtree(before)
        else:
            aside.replace(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_text_atomically(path: str | Path, text: str) -> None:
    """Writes UTF-8 text so that readers see the old file or the whole new one."""
    with replacing_file(path) as aside:
        aside.write_text(text, encoding="utf-8")
