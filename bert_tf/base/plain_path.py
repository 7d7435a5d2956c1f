"""Names for TensorFlow's checkpoint readers, which treat a path as a glob."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MARKS = re.compile(r"[*?\[\\]")


@contextmanager
def plain_path(folder: str | Path) -> Iterator[Path]:
    """Yields a path to a folder that no pattern differs from: its own, or a link that is removed
    in the end where its own has brackets, asterisks, question marks or backslashes.

    Args:
        folder: that exists.
    """
    if not _MARKS.search(str(folder)):
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory() as place:
        link = Path(place) / "folder"
        link.symlink_to(Path(folder).resolve(), target_is_directory=True)
        yield link
