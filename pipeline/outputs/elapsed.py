"""Seconds that a job takes, added up over the runs that were interrupted."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.base.files import RemotePath
from bert_tf.base.json_files import read_sealed, write_sealed

# Between two writes of the elapsed time, of which a killed job loses the last. Each write to other
# storage is a request.
_SECONDS = 5.0
_REMOTE_SECONDS = 60.0


@dataclasses.dataclass
class Elapsed:
    """Seconds of a job.

    Attributes:
        earlier: of interrupted runs before this one, approximately.
        start: of this run, by the monotonic clock.
    """

    earlier: float
    start: float = dataclasses.field(default_factory=time.monotonic)

    def total(self) -> float:
        return self.earlier + time.monotonic() - self.start

    def timings(self) -> dict[str, float]:
        """Return `total` of all runs, and `last_part` if there are several."""
        total = self.total()
        if not self.earlier:
            return {"total": round(total, 3)}
        return {"last_part": round(total - self.earlier, 3), "total": round(total, 3)}


@contextmanager
def adding_up_seconds(path: Path | None, console: Console, *, anew: bool) -> Iterator[Elapsed]:
    """Time the block; if it fails or is killed, a file keeps its time for the resumed run.

    Args:
        path: the file; None if no run resumes another.
        anew: whether the time of earlier runs does not count.
    """
    if path is None:
        yield Elapsed(0.0)
        return
    elapsed = Elapsed(0.0 if anew else _read_seconds(path, console))
    interval = _REMOTE_SECONDS if isinstance(path, RemotePath) else _SECONDS
    ended = threading.Event()

    def keep() -> None:
        with suppress(OSError):  # a full disk stops the job where it writes its output
            keep_seconds(path, elapsed.total())

    def keep_on() -> None:
        while not ended.wait(interval):
            keep()

    thread = threading.Thread(target=keep_on, daemon=True)
    thread.start()
    try:
        yield elapsed
    except BaseException:
        keep()
        raise
    finally:
        ended.set()
        thread.join()
    path.unlink(missing_ok=True)


def keep_seconds(path: Path, seconds: float) -> None:
    """Store the seconds that the next `adding_up_seconds` of this file starts from."""
    write_sealed(path, {"seconds": round(seconds, 6)})


def _read_seconds(path: Path, console: Console) -> float:
    """Return the seconds of earlier runs; 0 if there are none, or if the file is damaged."""
    try:
        return float(read_sealed(path)["seconds"])
    except FileNotFoundError:
        return 0.0
    except (ValueError, KeyError, TypeError):
        console.warn(f"{path}: damaged; the time of earlier runs is missing from the total")
        return 0.0
