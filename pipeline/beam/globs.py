"""What a glob matches: as in a shell, wildcards match no dot at the beginning of a name."""

from __future__ import annotations

import re

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
