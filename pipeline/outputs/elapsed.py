"""The time that a job takes, over all the runs it needs where it is interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.base.files import RemotePath, write_text_atomically
from bert_tf.base.json_files import read_sealed, sealed

_SECONDS, _REMOTE_SECONDS = 5.0, 60.0


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
def adding_up_seconds(path: Path | None, console: Console, *, anew: bool) -> Iterator[Elapsed]:
    """Measures the block, and saves its time for the run that resumes it if it does not end.

    Args:
        path: file with the time so far, removed once the block has ended; None where no run
            resumes another.
        console: warned where that file is damaged; the time is no reason to stop a job.
        anew: whether the block starts over; the time of earlier runs does not count then.
    """
    if path is None:
        yield Elapsed(0.0)
        return
    elapsed = Elapsed(0.0 if anew else _read_seconds(path, console))
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
    write_text_atomically(path, sealed({"seconds": round(seconds, 6)}))


def _read_seconds(path: Path, console: Console) -> float:
    try:
        return float(read_sealed(path)["seconds"])
    except FileNotFoundError:
        return 0.0
    except (ValueError, KeyError, TypeError):
        console.warn(f"{path}: damaged; the time of earlier runs is missing from the total")
        return 0.0


def _keep_on(path: Path, elapsed: Elapsed, ended: threading.Event) -> None:
    while not ended.wait(_REMOTE_SECONDS if isinstance(path, RemotePath) else _SECONDS):
        _keep(path, elapsed)


def _keep(path: Path, elapsed: Elapsed) -> None:
    with suppress(OSError):  # a full disk stops the job where it writes what matters
        keep_seconds(path, elapsed.earlier + elapsed.this_run())
