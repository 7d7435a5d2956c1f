"""The log of a job beside its output: its own lines, and all that libraries write to stderr."""

from __future__ import annotations

import os
import re
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from bert_tf.base.errors import GraphWritten, StoppedEarly
from bert_tf.base.files import RemotePath

LOG = "job.log"
OLDER = ".1"  # at the end of the name of a log that was full
# First bytes of messages to the process that writes the file; no line begins with them.
OPEN = b"\0"
LINE = b"\1"
_FIRST_LINE = re.compile(rb"\d{4}-\d\d-\d\d [\d:]+ UTC: bert-pipeline ")


class LogNote(str):
    """The path of a failed job's log, as a note on its exception."""


class JobLog:
    """Sends a job's log by a pipe to the process that writes it, which outlives this one.

    That process keeps the lines until it knows the file (`bert_tf/base/noise_filter.py`).
    """

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self.path: Path | None = None

    def write(self, text: str) -> None:
        now = f"{datetime.now(UTC):%H:%M:%S} "
        for line in text.splitlines():
            self._send(LINE + (now + line).encode(errors="replace"))

    def keep_beside(self, path: Path, command: str) -> None:
        """Direct the log to a file from here on, unless it is remote or not such a log."""
        if self.path is not None or isinstance(path, RemotePath) or not _can_be_log(path):
            return
        self.path = path
        begun = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: bert-pipeline {command}"
        self._send(OPEN + begun.encode() + OPEN + os.fsencode(path.absolute()))

    def note_failure(self, error: BaseException) -> None:
        """Log the traceback, or only a stop's message, and note the log's path on the error."""
        if isinstance(error, GraphWritten | StoppedEarly):
            self.write(str(error))
            return
        self.write("".join(traceback.format_exception(error)))
        if self.path is not None:
            error.add_note(LogNote(self.path))

    def _send(self, message: bytes) -> None:
        with suppress(OSError):  # the process is gone; a job needs no log to go on
            data = message + b"\n"
            while data:
                data = data[os.write(self._descriptor, data) :]


def _can_be_log(path: Path) -> bool:
    """Return whether the log exists, or can be created.

    A file of that name which is no log of ours is somebody else's, and is not touched.
    """
    try:
        with path.open("r+b") as stream:
            begin = stream.read(64)
    except FileNotFoundError:
        return os.access(path.parent, os.W_OK)
    except OSError:
        return False
    return not begin or _FIRST_LINE.match(begin) is not None
