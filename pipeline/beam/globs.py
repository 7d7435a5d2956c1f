"""Globs as in a shell, where wildcards match no dot at the beginning of a name."""

from __future__ import annotations

import collections
import math
import os
import re
import shlex
import stat
from collections.abc import Collection, Iterator
from pathlib import Path, PurePath

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.dialect import COMPRESSIONS, TABLE_FORMATS

READ_AGAIN = "is a pipe or device, and input is read more than once; write it to a file first"
GLOB_MARK = re.compile(r"[*?[]")
# A dot that another character of the same name precedes; at the beginning it has to be written.
_DOT = r"(?<=[^/])\."
_ANY_IN_NAME = rf"(?:[^/.]|{_DOT})"
_FIXED_MARKS = {"**": rf"(?:[^.]|{_DOT})*", "*": f"{_ANY_IN_NAME}*", "?": _ANY_IN_NAME, ".": _DOT}
# Brackets, of which a first `]` is a part; dots after marks; the others.
_MARKS = re.compile(r"\[(!?+)(.[^]]*)\]|(?<=[*?\]])\.|\*\*?|\?", re.DOTALL)
FORMAT_OF_ENDING = {".txt": "text", ".text": "text", **TABLE_FORMATS, ".xml": "mediawiki"}
FORMAT_OF_ENDING |= {".html": "html", ".htm": "html", ".warc": "warc", ".wet": "warc"}
_FILES_LOOKED_AT = 10_000  # of a folder, for the glob in a message


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Compile a shell glob (`*`, `?`, `[a-c]`, `[!a-c]`, `**` across folders) for `fullmatch`.

    As in a shell, no wildcard matches a dot at the beginning of a name, nor do brackets.
    """
    pattern = ""
    place = 0
    for mark in _MARKS.finditer(glob):
        pattern += re.escape(glob[place : mark.start()])
        pattern += _FIXED_MARKS.get(mark[0]) or _bracket(mark[2], is_negated=bool(mark[1]))
        place = mark.end()
    return re.compile(pattern + re.escape(glob[place:]), re.DOTALL)


def _bracket(characters: str, *, is_negated: bool) -> str:
    """Return the expression for one of some characters, or for any other one."""
    escaped = re.sub(r"[]\\[^]", r"\\\g<0>", characters)
    negation = "^" if is_negated else ""
    return rf"(?=[^/.]|{_DOT})[{negation}{escaped}]"


def list_local(pattern: str) -> dict[str, int]:
    """Map the local files that a path or glob names to their sizes in bytes.

    Unlike Beam's globs: `~` and brackets in names work, links to folders are followed, and folders
    are searched only as deep as the glob goes.

    Raises:
        UsageError: it is a pipe or device.
    """
    if pattern.startswith("~") and not Path(pattern).exists():
        pattern = os.path.expanduser(pattern)  # noqa: PTH111  a path would lose the last slash
    if pattern.endswith("/"):
        pattern += "*"
    if pattern and Path(pattern).exists():
        return {pattern: _size(pattern)}
    parts = pattern.split("/")
    literal = 0
    while literal < len(parts) - 1 and Path("/".join(parts[: literal + 1]) + "/").is_dir():
        literal += 1
    if not GLOB_MARK.search(parts[literal]):
        return {}
    prefix = "".join(f"{part}/" for part in parts[:literal])
    glob = "/".join(parts[literal:])
    is_match = glob_pattern(glob).fullmatch
    deepest = math.inf if "**" in glob else glob.count("/")
    top = prefix or "./"
    sizes = {}
    for folder, names in _walk(top, deepest):
        inside = f"{folder[len(top) :]}/".lstrip("/")
        for path in filter(is_match, (inside + name for name in names)):
            try:
                sizes[prefix + path] = _size(prefix + path)
            except OSError:  # it was removed meanwhile, or is a link to nothing
                continue
    return sizes


def _walk(top: str, deepest: float) -> Iterator[tuple[str, list[str]]]:
    """Yield folders with the names of their files; links are followed.

    A folder comes once, even if links lead to it. Links are followed last, so that a folder has its
    own name rather than that of a link.
    """
    linked: list[str] = []
    seen: set[tuple[int, int]] = set()
    tops = [top]
    while tops:
        for folder, subfolders, names in os.walk(tops.pop(0)):
            state = Path(folder).stat()
            if (state.st_dev, state.st_ino) in seen:
                subfolders.clear()
                continue
            seen.add((state.st_dev, state.st_ino))
            yield folder, names
            depth = f"{folder[len(top) :]}/".lstrip("/").count("/")
            if depth >= deepest:
                subfolders.clear()
            paths = sorted(os.path.join(folder, name) for name in subfolders)  # noqa: PTH118
            linked += [path for path in paths if Path(path).is_symlink()]
        if not tops:
            tops = linked
            linked = []


def _size(path: str) -> int:
    """Return the size of a file or folder; raise UsageError for a pipe or device."""
    state = Path(path).stat()
    if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
        raise UsageError(f"{path}: {READ_AGAIN}")
    return state.st_size


def why_no_file(pattern: str) -> str:
    """Return advice for a path or glob that matches no file."""
    if pattern == "-":
        return READ_AGAIN
    if GLOB_MARK.search(pattern):
        return "no file matches; check the path and quote the glob"
    if pattern.endswith("/"):
        return "this folder has no files, except hidden ones; check the path"
    return "no such file; check the path"


def instead_of_folder(folder: str, endings: Collection[str]) -> str:
    """Return advice for a folder given as a file: the glob for most of its files.

    Args:
        folder: the path.
        endings: of readable files.
    """
    glob = glob_of_folder(folder, endings)
    if glob is None:
        return f"no file in it ends in {', '.join(endings)}; name the files to read"
    return f"name its files, e.g. {shlex.quote(glob)}"


def glob_of_folder(folder: str, endings: Collection[str]) -> str | None:
    """Return the glob for most files of a folder; None without a readable one.

    Args:
        folder: the path.
        endings: of readable files.
    """
    shallow: collections.Counter[str] = collections.Counter()
    deep: collections.Counter[str] = collections.Counter()
    for path in _first_files(folder):
        compression = path.suffix if path.suffix.lower() in COMPRESSIONS else ""
        suffix = PurePath(path.stem).suffix if compression else path.suffix
        if suffix.lower() in endings:
            ending = suffix + compression
            deep[ending] += 1
            if path.parent == PurePath(folder):
                shallow[ending] += 1
    if not deep:
        return None
    ending, number = (shallow or deep).most_common(1)[0]
    wildcard = "*" if shallow[ending] == number else "**"
    return f"{folder}/{wildcard}{ending}"


def _first_files(folder: str) -> list[PurePath]:
    """Return some of the files in a folder, at any depth, without hidden ones."""
    files: list[PurePath] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += [PurePath(place, name) for name in sorted(names) if not name.startswith(".")]
        if len(files) > _FILES_LOOKED_AT:
            break
    return files
