"""What a glob matches: as in a shell, wildcards match no dot at the beginning of a name."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

GLOB_MARK = re.compile(r"[*?[]")
# A dot that another character of the same name precedes; at the beginning it has to be written.
_DOT = r"(?<=[^/])\."
_ANY_IN_NAME = rf"(?:[^/.]|{_DOT})"
_ANY = rf"(?:[^.]|{_DOT})"


def glob_pattern(glob: str) -> re.Pattern[str]:
    """The paths that a glob names.

    | glob    | matches                                             |
    |---------|-----------------------------------------------------|
    | `*`     | any characters of a name                            |
    | `?`     | one of them                                         |
    | `[a-c]` | one of these; `[!a-c]` one of the others            |
    | `**`    | any characters of names, and folders between them   |

    A bracket that is never closed matches itself.

    Args:
        glob: relative to where the paths begin.

    Returns:
        To be used with `fullmatch`.
    """
    pattern, place = "", 0
    while place < len(glob):
        character = glob[place]
        place += 1
        if character == "*" and glob[place : place + 1] == "*":
            place += 1
            pattern += f"{_ANY}*"
        elif character == "*":
            pattern += f"{_ANY_IN_NAME}*"
        elif character == "?":
            pattern += _ANY_IN_NAME
        elif character == "[" and (end := _end_of_bracket(glob, place)):
            pattern += _bracket(glob[place:end])
            place = end + 1
        elif character == "." and glob[: place - 1].endswith(("*", "?", "]")):
            pattern += _DOT
        else:
            pattern += re.escape(character)
    return re.compile(pattern, re.DOTALL)


def list_local(pattern: str) -> dict[str, int]:
    """Size in bytes by path of the files of this machine that a path or glob names.

    That is what Beam's local file system finds, and more: a glob needs no folder before it, names
    with brackets can be taken literally, and folders are looked at only as deep as the glob goes.
    """
    if pattern.endswith("/"):
        pattern += "*"
    if pattern and Path(pattern).exists():
        return {pattern: Path(pattern).stat().st_size}
    parts = pattern.split("/")
    literal = 0
    while literal < len(parts) - 1 and Path("/".join(parts[: literal + 1]) + "/").is_dir():
        literal += 1
    if not GLOB_MARK.search(parts[literal]):
        return {}
    prefix, glob = "".join(f"{part}/" for part in parts[:literal]), "/".join(parts[literal:])
    is_match = glob_pattern(glob).fullmatch
    deepest = math.inf if "**" in glob else glob.count("/")
    top = prefix or "./"
    found = {}
    for folder, subfolders, names in os.walk(top):
        inside = f"{folder[len(top) :]}/".lstrip("/")
        if inside.count("/") >= deepest:
            subfolders.clear()
        for path in filter(is_match, (inside + name for name in names)):
            try:
                found[prefix + path] = Path(prefix + path).stat().st_size
            except OSError:  # it went meanwhile, or is a link to nothing
                continue
    return found


def why_no_file(pattern: str) -> str:
    """What to do about a path or glob that no file is found for."""
    if GLOB_MARK.search(pattern):
        return "no file matches; check the path and quote the glob"
    if pattern.endswith("/"):
        return "no file in this folder that is not hidden; check the path"
    return "no such file; check the path"


def _end_of_bracket(glob: str, start: int) -> int | None:
    """Where the bracket that begins before `start` is closed; one that comes first is in it."""
    first = start + glob.startswith("!", start)
    end = glob.find("]", first + 1)
    return None if end < 0 else end


def _bracket(content: str) -> str:
    others = content.startswith("!")
    characters = content.removeprefix("!").replace("\\", r"\\").replace("[", r"\[")
    if characters.startswith(("^", "]")):
        characters = "\\" + characters
    return rf"(?=[^/.]|{_DOT})[{'^' if others else ''}{characters}]"
