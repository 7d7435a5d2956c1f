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

from bert_tf.base.console import Advance, Console
from bert_tf.base.wording import shown_size

_VARIABLE = "BERT_PIPELINE_PROGRESS_FILE"
_RECORD = struct.Struct("<Bq")
_SECONDS = 0.5
_SPLITS_THAT_TELL = 4


class Progress(enum.IntEnum):
    """What workers report.

    Bytes of text read, bytes of intermediate data, finished shards; tables whose rows are counted,
    those rows, rows that an earlier run had finished, rows done, and the tokens of batches without
    padding and with it; splits that files were cut into, and those that are read.
    """

    TEXT_BYTES = 0
    SPILLED_BYTES = 1
    SHARDS = 2
    TABLES = 3
    TABLE_ROWS = 4
    EARLIER_ROWS = 5
    ROWS = 6
    TOKENS = 7
    PADDED_TOKENS = 8
    SPLITS = 9
    SPLITS_READ = 10


ProgressLine = Callable[[Counter[int], float], Advance | None]
"""What to show, None for nothing yet, from how much has been done by its kind and the seconds
since the pipeline began; called by one thread at a time."""


def report_progress(kind: Progress, amount: int) -> None:
    """Reports, in a worker, that so much more has been done."""
    path = os.environ.get(_VARIABLE)
    if path:
        with Path(path).open("ab", buffering=0) as stream:
            stream.write(_RECORD.pack(kind, amount))


@contextmanager
def _watching(
    console: Console, line: Callable[[], Advance | None], *, seconds: float
) -> Iterator[None]:
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


def text_line(done: Counter[int], seconds: float) -> Advance | None:
    """How much text was read; a `ProgressLine`.

    The fraction is that of the splits, while some are not read and there are enough to tell.
    """
    if not done[Progress.TEXT_BYTES]:
        return None
    read, splits = done[Progress.SPLITS_READ], done[Progress.SPLITS]
    return Advance(
        f"read {shown_size(done[Progress.TEXT_BYTES])} of text, {seconds:,.0f} s",
        read / splits if read < splits and splits >= _SPLITS_THAT_TELL else None,
    )


class ProgressWatch:
    """Shows, while it is open, what local workers report.

    Args:
        console: where to.
        line: what of it.
    """

    def __init__(self, console: Console, line: ProgressLine = text_line):
        self._console = console
        self._line_of = line
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
            stack.enter_context(_watching(self._console, self._line, seconds=_SECONDS))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        failure: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(failure, error, trace)

    def _line(self) -> Advance | None:
        """What to show, None before anything is done."""
        data = self._cut + self._reports.readall()
        whole = len(data) - len(data) % _RECORD.size
        self._cut = data[whole:]
        for kind, amount in _RECORD.iter_unpack(data[:whole]):
            self._done[kind] += amount
        return self._line_of(self._done, time.monotonic() - self._start)
