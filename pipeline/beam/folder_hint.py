"""Files that can be read, by the ends of their names, and the glob to give instead of a folder."""

from __future__ import annotations

import collections
import os
import shlex
from collections.abc import Collection
from pathlib import PurePath

from bert_tf.data.tables.file_names import TABLE_FORMATS

FORMAT_OF_ENDING = {
    ".txt": "text",
    ".text": "text",
    **TABLE_FORMATS,
    ".xml": "mediawiki",
}
_FILES_LOOKED_AT = 10_000


def instead_of_folder(folder: str, endings: Collection[str], compressions: Collection[str]) -> str:
    """What to do where files are expected and a folder is given: the glob for most of its files.

    Args:
        folder: its path, without a slash at the end.
        endings: those of files that can be read.
        compressions: endings that may follow.
    """
    shallow: collections.Counter[str] = collections.Counter()
    deep: collections.Counter[str] = collections.Counter()
    for path in _first_files(folder):
        ending = _ending(path, endings, compressions)
        if ending is not None:
            deep[ending] += 1
            shallow[ending] += path.parent == PurePath(folder)
    if not deep:
        return f"no file in it ends in {', '.join(endings)}; name the files to read"
    ending, number = (+shallow or deep).most_common(1)[0]
    wildcard = "*" if shallow[ending] == number else "**"
    return f"name its files, e.g. {shlex.quote(f'{folder}/{wildcard}{ending}')}"


def _first_files(folder: str) -> list[PurePath]:
    """The first files in a folder that are not hidden, those in its folders too."""
    found: list[PurePath] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [PurePath(place, name) for name in sorted(names) if not name.startswith(".")]
        if len(found) > _FILES_LOOKED_AT:
            break
    return found


def _ending(path: PurePath, endings: Collection[str], compressions: Collection[str]) -> str | None:
    last = path.suffix
    compression = last if last.lower() in compressions else ""
    format_ending = PurePath(path.stem).suffix if compression else last
    return format_ending + compression if format_ending.lower() in endings else None
