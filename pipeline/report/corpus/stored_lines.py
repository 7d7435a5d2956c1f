"""Lines of files as they are stored, also those that readers reject."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from bert_tf.base.errors import InputError
from pipeline.beam.files import UncompressedFile

_STEP_BYTES = 1 << 20
_MOST_BYTES = 64_000_000
_SHOWN_BYTES = 1000
_BEFORE_FAULT = 200


def stored_lines(path: str, numbers: Collection[int], *, encoding: str) -> dict[int, str]:
    """Some lines of a file, to be shown.

    Args:
        path: the file, compressed or not.
        numbers: of the lines, from 1.
        encoding: of the file, as Python names it.

    Returns:
        By number, a thousand bytes at most of each line in the first megabytes of the file, around
        the first that is not UTF-8; such bytes are escaped. Of a damaged file those before the
        damage.
    """
    found: dict[int, str] = {}
    wanted, number, rest, done = set(numbers), 1, b"", 0
    # The file was read as far as it was needed, so damage here lies behind that.
    with contextlib.suppress(InputError), UncompressedFile(path, encoding) as file:
        while wanted and done < _MOST_BYTES and (part := file.read(_STEP_BYTES)):
            done += len(part)
            *lines, rest = (rest + part).split(b"\n")
            for here in [each for each in wanted if each < number + len(lines)]:
                found[here] = _shown(lines[here - number])
                wanted.remove(here)
            number += len(lines)
    if number in wanted and rest:
        found[number] = _shown(rest)
    return found


def _shown(line: bytes) -> str:
    begin = 0
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        begin = _border(line, max(error.start - _BEFORE_FAULT, 0))
    end = _border(line, begin + _SHOWN_BYTES)
    text = line[begin:end].decode("utf-8", "backslashreplace")
    return f"{'…' if begin else ''}{text}{'…' if end < len(line) else ''}"


def _border(line: bytes, place: int) -> int:
    """The beginning of the character at a place, which is at most three bytes before it."""
    border = min(place, len(line))
    while border > place - 3 and 0 < border < len(line) and line[border] & 0xC0 == 0x80:
        border -= 1
    return border
