"""The lines of the parts of a JSON text, which Python's parser does not keep."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

_BLANKS = re.compile(r"[ \t\n\r]*")

JsonPath = tuple[str | int, ...]
"""Keys and places in lists, from the top: `("data", 0, "paragraphs", 2)`."""


def lines_of_parts(text: str, pattern: Sequence[str | None]) -> dict[JsonPath, int]:
    """The lines, counted from 1, of all parts on the way down a pattern.

    What the pattern does not lead through is skipped by Python's own parser, at its speed.

    Args:
        text: valid JSON.
        pattern: a key where an object is expected, None for all items of a list.
    """
    lines: dict[JsonPath, int] = {}
    line, counted = 1, 0
    for path, place in _Walk(text).parts(pattern, ()):
        line += text.count("\n", counted, place)
        counted = place
        lines[path] = line
    return lines


class _Walk:
    """Steps through a valid JSON text."""

    def __init__(self, text: str):
        self._text = text
        self._place = 0
        self._decoder = json.JSONDecoder()

    def parts(
        self, pattern: Sequence[str | None], path: JsonPath
    ) -> Iterator[tuple[JsonPath, int]]:
        """Paths and offsets of the value that begins here, and of all below it on the pattern."""
        self._skip_blanks()
        yield path, self._place
        opening = self._text[self._place]
        if not pattern or opening != ("[" if pattern[0] is None else "{"):
            self._value()
            return
        for key in self._keys(is_object=opening == "{"):
            if pattern[0] in (None, key):
                yield from self.parts(pattern[1:], (*path, key))
            else:
                self._value()

    def _keys(self, *, is_object: bool) -> Iterator[str | int]:
        """Steps to each value of the list or object that begins here; the caller steps over it."""
        self._place += 1
        for number in itertools.count():
            self._skip_blanks()
            if self._text[self._place] in "]}":
                self._place += 1
                return
            if number:
                self._place += 1  # the comma
            key = number
            if is_object:
                key = self._value()
                self._skip_blanks()
                self._place += 1  # the colon
            yield key

    def _value(self) -> Any:
        self._skip_blanks()
        value, self._place = self._decoder.raw_decode(self._text, self._place)
        return value

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self._text, self._place)
        assert match is not None  # it matches nothing, too
        self._place = match.end()
