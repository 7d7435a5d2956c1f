"""The progress of a running job, from local workers, in a file named by an environment variable.

Cluster workers do not inherit the variable; the runner's own pages show the progress.
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

from bert_tf.base.console import Advance, Console
from bert_tf.base.wording import shown_size

_VARIABLE = "BERT_PIPELINE_PROGRESS_FILE"
_RECORD = struct.Struct("<Bq")  # kind and amount
_SECONDS = 0.5  # between two readings of the file
_SPLITS_THAT_TELL = 4  # with fewer, the fraction of read splits says little
ProgressLine = Callable[[Counter[int], float], Advance | None]
"""Formats amounts by kind and elapsed seconds; None means show nothing yet.

One thread calls it at a time."""


class Progress(enum.IntEnum):
    """Kinds of amounts that workers report."""

    TEXT_BYTES = 0
    SPILLED_BYTES = 1  # of intermediate data
    SHARDS = 2
    TABLES = 3  # whose rows are counted
    TABLE_ROWS = 4
    EARLIER_ROWS = 5  # finished by an earlier run
    ROWS = 6
    TOKENS = 7  # of batches, without padding
    PADDED_TOKENS = 8
    SPLITS = 9  # that files were cut into
    SPLITS_READ = 10


def report_progress(kind: Progress, amount: int) -> None:
    """Add an amount of a kind to the job's progress; a worker of a cluster reports nothing."""
    path = os.environ.get(_VARIABLE)
    if path:
        with Path(path).open("ab", buffering=0) as stream:
            stream.write(_RECORD.pack(kind, amount))


def text_line(done: Counter[int], seconds: float) -> Advance | None:
    """Format the text read, and while many splits are read, their fraction; a `ProgressLine`."""
    if not done[Progress.TEXT_BYTES]:
        return None
    text = f"read {shown_size(done[Progress.TEXT_BYTES])} of text, {seconds:,.0f} s"
    read = done[Progress.SPLITS_READ]
    splits = done[Progress.SPLITS]
    fraction = None
    if read < splits and splits >= _SPLITS_THAT_TELL:
        fraction = read / splits
    return Advance(text, fraction)


class ProgressWatch:
    """Shows the reports of local workers while it is open, and once more at the end of success.

    Workers append records of a fixed size to one file, which is atomic for so few bytes.
    """

    def __init__(self, console: Console, line: ProgressLine = text_line):
        self._console = console
        self._line_of = line
        self._done: Counter[int] = Counter()
        self._cut = b""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> ProgressWatch:
        self._reports = tempfile.NamedTemporaryFile(
            "rb", buffering=0, prefix="bert-pipeline-progress-"
        )
        os.environ[_VARIABLE] = self._reports.name
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        os.environ.pop(_VARIABLE, None)
        with self._reports:
            last = self.line() if failure is None else None
        if last is not None:
            self._console.end_progress(last)

    def _watch(self) -> None:
        while not self._ended.wait(_SECONDS):
            now = self.line()
            if now is not None:
                self._console.progress(now)

    def line(self) -> Advance | None:
        """Read new reports of workers, and return the line to show; None for none."""
        data = self._cut + self._reports.read()
        whole = len(data) - len(data) % _RECORD.size
        self._cut = data[whole:]
        for kind, amount in _RECORD.iter_unpack(data[:whole]):
            self._done[kind] += amount
        return self._line_of(self._done, time.monotonic() - self._start)
