"""The time that a job takes, over all the runs it needs where it is interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bert_tf.base.atomic_files import write_text_atomically

_SECONDS = 5.0


class Elapsed:
    """Seconds of a job.

    Attributes:
        earlier: of the runs before this one, to within some seconds for those that were killed.
    """

    def __init__(self, earlier: float):
        self.earlier = earlier
        self._start = time.monotonic()

    def this_run(self) -> float:
        """Of this run so far."""
        return time.monotonic() - self._start

    def timings(self) -> dict[str, float]:
        """For the manifest: `total` of all runs, and of the last one where there are several."""
        seconds = self.this_run()
        if not self.earlier:
            return {"total": round(seconds, 3)}
        return {"last_part": round(seconds, 3), "total": round(self.earlier + seconds, 3)}


@contextmanager
def adding_up_seconds(path: Path | None, *, anew: bool) -> Iterator[Elapsed]:
    """Measures the block, and keeps its time for the run that continues it if it does not end.

    Args:
        path: file that keeps the time, gone once the block has ended; None where no run continues
            another.
        anew: whether the block starts over, whatever earlier runs did.
    """
    if path is None:
        yield Elapsed(0.0)
        return
    elapsed = Elapsed(0.0 if anew or not path.is_file() else float(path.read_text()))
    ended = threading.Event()
    thread = threading.Thread(target=_keep_on, args=(path, elapsed, ended), daemon=True)
    thread.start()
    try:
        yield elapsed
    except BaseException:
        ended.set()
        thread.join()
        _keep(path, elapsed)
        raise
    ended.set()
    thread.join()
    path.unlink(missing_ok=True)


def keep_seconds(path: Path, seconds: float) -> None:
    """Has the next `adding_up_seconds` of this file begin with a time.

    Args:
        path: the file.
        seconds: of the runs so far.
    """
    write_text_atomically(path, f"{seconds:.6f}\n")


def _keep_on(path: Path, elapsed: Elapsed, ended: threading.Event) -> None:
    while not ended.wait(_SECONDS):
        _keep(path, elapsed)


def _keep(path: Path, elapsed: Elapsed) -> None:
    with suppress(OSError):  # a full disk stops the job where it writes what matters
        keep_seconds(path, elapsed.earlier + elapsed.this_run())
