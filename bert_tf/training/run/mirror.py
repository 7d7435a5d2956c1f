"""Where a run is kept that is written in a folder of this machine meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class RunMirror(Protocol):
    """Other storage that has a run after each of its checkpoints."""

    @property
    def place(self) -> Path:
        """The run there, for messages."""

    def fetch(self) -> None:
        """Fills the run directory of this machine with what is there, once in a process.

        Called when all workers train together, so none sees what another is about to remove.
        """

    def publish(self) -> None:
        """Brings there what has changed in the run directory; on workers that write alone.

        A checkpoint is there as a whole or not at all, and what is newer than the newest one is
        what a run that resumes from that would make again. May be called again after a failure.

        Raises:
            OSError: the storage cannot be written.
            UsageError: another process has taken the run over.
        """
