"""Copies stdin to stderr without the noise in `noise.txt`, and completely to the job's log.

Run as a script by an interpreter without packages; its argument is the descriptor of the pipe by
which the job writes to the log. Warnings and errors pass unless they are listed there.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
from pathlib import Path

_SECONDS_OF_A_LINE = 0.2  # after which an incomplete line is shown: it is a prompt
_READ_BYTES = 1 << 16  # most bytes that are read at once
_LONGEST_LINE = 1 << 20  # bytes; a longer one is shown in parts, to bound the memory
_LONGEST_LOG = 1 << 24  # bytes, after which output of libraries is left out
# The same as in pipeline/outputs/job_log.py, which this process does not import.
OPEN = b"\0"
_FIRST_LINE = re.compile(rb"\d{4}-\d\d-\d\d [\d:]+ UTC: bert-pipeline ")

_LINES = Path(__file__).with_name("noise.txt").read_bytes().splitlines()
_NOISE = re.compile(b"|".join(line for line in _LINES if line[:1] not in (b"", b"#")))


def is_noise(line: bytes) -> bool:
    """Return whether a line, as a library writes it to stderr, matches a pattern of `noise.txt`."""
    return _NOISE.search(line) is not None


class Log:
    """The log of a job; keeps lines until its file is known.

    Always writes the job's own lines; lines of libraries only up to _LONGEST_LOG. Never touches a
    file that does not begin like such a log.
    """

    def __init__(self) -> None:
        self._file = -1
        self._is_refused = False
        self._waiting: list[bytes] = []
        self._left = _LONGEST_LOG
        self._begun = b""

    def read(self, chunk: bytes) -> None:
        """Write messages of `JobLog`; keep the last one until it is complete."""
        *messages, self._begun = (self._begun + chunk).split(b"\n")
        for message in messages:
            if message[:1] == OPEN:
                first_line, _, path = message[1:].partition(OPEN)
                self._open(path, first_line)
            else:
                self._add(message[1:] + b"\n")

    def write(self, lines: list[bytes]) -> None:
        """Write output of libraries, if there is room left for it."""
        data = b"".join(lines)
        if self._left <= 0 or not data:
            return
        self._left -= len(data)
        if self._left <= 0:
            data += b"(further output of libraries is left out: this log is too long)\n"
        self._add(data)

    def _add(self, data: bytes) -> None:
        if self._file >= 0:
            self._append(data)
        elif not self._is_refused:
            self._waiting.append(data)

    def _open(self, path: bytes, first_line: bytes) -> None:
        try:
            file, size = _open_log(path)
            if size and size >= self._left and _set_aside(path):
                os.close(file)
                file, size = _open_log(path)
        except OSError:  # the job works without a log
            self._is_refused = True
            self._left = 0
            self._waiting.clear()
            return
        self._file = file
        self._left -= size
        self._append(b"".join((first_line, b"\n", *self._waiting)))
        self._waiting.clear()

    def _append(self, data: bytes) -> None:
        if not _write(self._file, data):
            self._left = 0


def _open_log(path: bytes) -> tuple[int, int]:
    """Open or create a log; return its descriptor and its size in bytes."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    begin = os.read(file, 64)
    if begin and not _FIRST_LINE.match(begin):
        os.close(file)
        raise FileExistsError(path)
    return file, os.fstat(file).st_size


def _set_aside(path: bytes) -> bool:
    """Rename a log to `job.log.1`, unless that is a file of another kind."""
    older = path + b".1"
    try:
        if os.path.lexists(older):
            file, _ = _open_log(older)
            os.close(file)
        os.replace(path, older)  # noqa: PTH105
    except OSError:
        return False
    return True


def main() -> None:
    """Copy stdin line by line until it ends, and messages of the job to its log."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    log = Log()
    begun = b""
    is_shown = True
    messages = [int(descriptor) for descriptor in sys.argv[1:]]
    while True:
        # A prompt has no line end; noise is written in one go.
        ready = select.select([0, *messages], [], [], _SECONDS_OF_A_LINE if begun else None)[0]
        for descriptor in set(messages).intersection(ready):
            sent = os.read(descriptor, _READ_BYTES)
            log.read(sent)
            if not sent:
                messages.remove(descriptor)
        if begun and not ready:
            is_shown = is_shown and _write_kept([begun])
            begun = b""
        if 0 not in ready:
            continue
        chunk = os.read(0, _READ_BYTES)
        lines = (begun + chunk).splitlines(keepends=True)
        is_whole = not chunk or chunk.endswith((b"\n", b"\r")) or len(lines[-1]) > _LONGEST_LINE
        begun = b"" if is_whole else lines.pop()
        log.write(lines)
        is_shown = is_shown and _write_kept(lines)
        if not chunk:
            break
    sent = os.read(messages[0], _READ_BYTES) if messages else b""
    while sent:
        log.read(sent)
        sent = os.read(messages[0], _READ_BYTES)


def _write_kept(lines: list[bytes]) -> bool:
    """Return whether stderr is still read: `2>&1 | head` ends early."""
    return _write(2, b"".join(line for line in lines if not is_noise(line)))


def _write(descriptor: int, data: bytes) -> bool:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
