"""Waiting for what another machine has written to appear on shared storage.

Network file systems promise close-to-open consistency: what a writer has closed is there for who
opens the file afterwards. But clients remember that a name was not there, or the size of a file,
for some seconds (of NFS up to a minute, `acdirmax`).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bert_tf.base.errors import RunnerFailed

# Seconds; for tests, and for storage that takes longer.
VARIABLE = "BERT_PIPELINE_VISIBILITY_SECONDS"
_SECONDS = 90.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0

Result = TypeVar("Result")


class NotYetSeen(Exception):
    """A file is not what it is to be; the message says what it is instead."""


def wait_until_seen(path: Path, read: Callable[[], Result]) -> Result:
    """Tries to read a file that is known to be written, again and again for a bounded time.

    Args:
        path: for the message.
        read: reads it; raises FileNotFoundError or NotYetSeen as long as it cannot.

    Raises:
        RunnerFailed: it could not be read in that time.
    """
    deadline = time.monotonic() + float(os.environ.get(VARIABLE, _SECONDS))
    pause = _FIRST_PAUSE
    while True:
        try:
            return read()
        except (FileNotFoundError, NotYetSeen) as error:
            if time.monotonic() + pause > deadline:
                seen = "no such file" if isinstance(error, FileNotFoundError) else str(error)
                raise RunnerFailed(
                    f"{path}: {socket.gethostname()} does not see what was written there ({seen}); "
                    "the output has to lie on storage that all workers share, and nothing may be "
                    "removed from it while the job runs"
                ) from None
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
