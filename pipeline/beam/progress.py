"""How far a running pipeline is, told by its workers to the process that watches it.

Workers append to a file named by an environment variable, which local worker processes inherit and
cluster workers do not have: there, the runner's own pages show the progress. Only what is new in
the file is read, so that watching costs the same however much has been done.
"""

from __future__ import annotations

import enum
import os
import struct
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.base.wording import shown_size

_VARIABLE = "BERT_PIPELINE_PROGRESS_FILE"
_RECORD = struct.Struct("<Bq")
_SECONDS = 0.5


class Progress(enum.IntEnum):
    """What workers tell of: bytes of text read, bytes of intermediate data, finished shards."""

    TEXT_BYTES = 0
    SPILLED_BYTES = 1
    SHARDS = 2


# What to show beside the text that was read, from how much has been done by its kind.
Describe = Callable[[Counter[int]], str]


def report_progress(kind: Progress, amount: int) -> None:
    """Says, in a worker, that so much more has been done."""
    path = os.environ.get(_VARIABLE)
    if path:
        with Path(path).open("ab", buffering=0) as stream:
            stream.write(_RECORD.pack(kind, amount))


class ProgressWatch:
    """Shows, while it is open, what local workers tell.

    Args:
        console: where to.
        describe: words on anything but text; None for none.
    """

    def __init__(self, console: Console, describe: Describe | None = None):
        self._console = console
        self._describe = describe
        self._done: Counter[int] = Counter()
        self._cut = b""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> ProgressWatch:
        descriptor, self._path = tempfile.mkstemp(prefix="bert-pipeline-progress-")
        self._told = os.fdopen(descriptor, "rb", buffering=0)
        os.environ[_VARIABLE] = self._path
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, failure: type[BaseException] | None, *details: object) -> None:
        self._ended.set()
        self._thread.join()
        os.environ.pop(_VARIABLE, None)
        line = self._line()
        if line is not None and failure is None:
            self._console.end_progress(line)
        self._told.close()
        Path(self._path).unlink(missing_ok=True)

    def _watch(self) -> None:
        while not self._ended.wait(_SECONDS):
            line = self._line()
            if line is not None:
                self._console.progress(line)

    def _line(self) -> str | None:
        """What to show, None before anything is done."""
        data = self._cut + self._told.readall()
        whole = len(data) - len(data) % _RECORD.size
        self._cut = data[whole:]
        for kind, amount in _RECORD.iter_unpack(data[:whole]):
            self._done[kind] += amount
        if not self._done:
            return None
        seconds = time.monotonic() - self._start
        line = f"read {shown_size(self._done[Progress.TEXT_BYTES])} of text, {seconds:,.0f} s"
        return f"{line}; {self._describe(self._done)}" if self._describe else line
