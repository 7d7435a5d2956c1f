"""How far a running pipeline is, told by its workers to the process that watches it.

Workers append to a file named by an environment variable, which local worker processes inherit and
cluster workers do not have: there, the runner's own pages show the progress.
"""

from __future__ import annotations

import os
import struct
import tempfile
import threading
import time
from pathlib import Path

from bert_tf.config.console import Console
from bert_tf.config.wording import shown_size

_VARIABLE = "BERT_PIPELINE_PROGRESS_FILE"
_RECORD = struct.Struct("<q")
_SECONDS = 0.5


def tell_progress(text_bytes: int) -> None:
    """Says, in a worker, that some bytes of text have been read."""
    path = os.environ.get(_VARIABLE)
    if path:
        with Path(path).open("ab", buffering=0) as stream:
            stream.write(_RECORD.pack(text_bytes))


class ProgressWatch:
    """Shows, while it is open, what local workers tell.

    Args:
        console: where to.
    """

    def __init__(self, console: Console):
        self._console = console
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> ProgressWatch:
        descriptor, self._path = tempfile.mkstemp(prefix="bert-pipeline-progress-")
        os.close(descriptor)
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
        Path(self._path).unlink(missing_ok=True)

    def _watch(self) -> None:
        while not self._ended.wait(_SECONDS):
            line = self._line()
            if line is not None:
                self._console.progress(line)

    def _line(self) -> str | None:
        """What to show, None before the first text."""
        data = Path(self._path).read_bytes()
        whole = len(data) - len(data) % _RECORD.size
        text_bytes = sum(amount for (amount,) in _RECORD.iter_unpack(data[:whole]))
        if not text_bytes:
            return None
        seconds = time.monotonic() - self._start
        return f"read {shown_size(text_bytes)} of text, {seconds:,.0f} s"
