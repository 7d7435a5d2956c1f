"""The progress of a running job: a line shown while it runs, and what local workers report for it.

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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from bert_tf.base.console import Console
from bert_tf.base.wording import shown_size

_VARIABLE = "BERT_PIPELINE_PROGRESS_FILE"
_RECORD = struct.Struct("<Bq")
_SECONDS = 0.5


class Progress(enum.IntEnum):
    """What workers report: bytes of text read, bytes of intermediate data, finished shards."""

    TEXT_BYTES = 0
    SPILLED_BYTES = 1
    SHARDS = 2


# What to show beside the text that was read, from how much has been done by its kind.
Describe = Callable[[Counter[int]], str]


def report_progress(kind: Progress, amount: int) -> None:
    """Reports, in a worker, that so much more has been done."""
    path = os.environ.get(_VARIABLE)
    if path:
        with Path(path).open("ab", buffering=0) as stream:
            stream.write(_RECORD.pack(kind, amount))


@contextmanager
def watching(console: Console, line: Callable[[], str | None], *, seconds: float) -> Iterator[None]:
    """Shows a line again and again while the block runs, and at its end unless it fails.

    Args:
        console: where to.
        line: what to show, None before anything is done; called by one thread at a time.
        seconds: from one call to the next.
    """
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(seconds):
            now = line()
            if now is not None:
                console.progress(now)

    thread = threading.Thread(target=watch, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    last = line()
    if last is not None:
        console.end_progress(last)


class ProgressWatch:
    """Shows, while it is open, what local workers report.

    Args:
        console: where to.
        describe: words on anything but text; None for none.
    """

    def __init__(self, console: Console, describe: Describe | None = None):
        self._console = console
        self._describe = describe
        self._done: Counter[int] = Counter()
        self._cut = b""

    def __enter__(self) -> ProgressWatch:
        with ExitStack() as stack:
            descriptor, path = tempfile.mkstemp(prefix="bert-pipeline-progress-")
            stack.callback(Path(path).unlink, missing_ok=True)
            self._reports = stack.enter_context(os.fdopen(descriptor, "rb", buffering=0))
            os.environ[_VARIABLE] = path
            stack.callback(os.environ.pop, _VARIABLE, None)
            self._start = time.monotonic()
            stack.enter_context(watching(self._console, self._line, seconds=_SECONDS))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        failure: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(failure, error, trace)

    def _line(self) -> str | None:
        """What to show, None before anything is done."""
        data = self._cut + self._reports.readall()
        whole = len(data) - len(data) % _RECORD.size
        self._cut = data[whole:]
        for kind, amount in _RECORD.iter_unpack(data[:whole]):
            self._done[kind] += amount
        if not self._done:
            return None
        seconds = time.monotonic() - self._start
        line = f"read {shown_size(self._done[Progress.TEXT_BYTES])} of text, {seconds:,.0f} s"
        return f"{line}; {self._describe(self._done)}" if self._describe else line
