"""The files of a run: checkpoints, metrics, and other storage that mirrors them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.files import remove_leftovers
from bert_tf.config.registries import TENSORBOARD
from bert_tf.training.checkpoints import Checkpoint, CheckpointStore, write_checkpoint
from bert_tf.training.metrics_log import Line, MetricsLog


class RunMirror(Protocol):
    """Other storage that has a run after each of its checkpoints."""

    @property
    def place(self) -> Path:
        """The run there, for messages."""

    def fetch(self) -> None:
        """Fills the run directory of this machine from there, once in a process.

        Called when all workers train together, so none sees what another is about to remove.
        """

    def publish(self) -> None:
        """Copies changes of the run directory there; called on workers that write.

        A checkpoint is there as a whole or not at all; a run that resumes from the newest one would
        make again whatever is newer. May be called again after a failure.

        Raises:
            OSError: the storage cannot be written.
            UsageError: another process has taken the run over.
        """


class RunFiles:
    """The files of one run.

    Args:
        directory: the run directory; None keeps nothing.
        writes: False for workers other than the chief.
        keep_checkpoints: number of the newest checkpoints kept.
        console: where damaged checkpoints and failures to publish are reported.
        mirror: where the run is kept, if that is not the directory.
        trackers, settings: see `MetricsLog`.
    """

    def __init__(
        self,
        directory: Path | None,
        *,
        writes: bool,
        keep_checkpoints: int,
        console: Console,
        mirror: RunMirror | None = None,
        trackers: Sequence[str] = (TENSORBOARD,),
        settings: Mapping[str, Any] | None = None,
    ):
        self.directory = directory
        self._mirror = mirror
        self._console = console
        self._trackers = trackers
        self._settings = settings
        self._is_behind = False
        self._writes = writes and directory is not None
        self._log: MetricsLog | None = None
        self._store = (
            CheckpointStore(
                directory / "checkpoints", keep=keep_checkpoints, writes=writes, console=console
            )
            if directory is not None
            else None
        )

    @property
    def writes(self) -> bool:
        return self._writes

    @property
    def place(self) -> Path | None:
        """Where the run is kept; None if it is not."""
        return self._mirror.place if self._mirror is not None else self.directory

    def newest_checkpoint(self) -> Checkpoint | None:
        """See `CheckpointStore.newest`.

        The process that writes first removes folders that a killed one was writing: checkpoints,
        states in `failed/`, and the model in `best/`.
        """
        if self._mirror is not None:
            self._mirror.fetch()
        if self._writes and self.directory is not None:
            for folder in ("checkpoints", "failed", "."):
                remove_leftovers(self.directory / folder)
        return self._store.newest() if self._store is not None else None

    def open_log(self, *, keep_until: Mapping[str, int]) -> None:
        if self._writes and self.directory is not None:
            self._log = MetricsLog(
                self.directory,
                keep_until=keep_until,
                warn=self._console.warn,
                trackers=self._trackers,
                name=str(self.place),
                settings=self._settings,
            )

    def write_line(self, line: Line) -> None:
        if self._log is not None:
            self._log.write(line)

    def close_log(self, *, is_finished: bool) -> None:
        if self._log is not None:
            self._log.close(is_finished=is_finished)

    def save(self, *, step: int, tensors: dict[str, np.ndarray], state: dict[str, Any]) -> None:
        """Writes a checkpoint, removes old ones and publishes it.

        Storage that fails for a while does not end the run: there is another checkpoint to come, or
        `publish_rest`.

        Raises:
            UsageError: another process has taken the run over.
        """
        if self._writes and self._store is not None:
            self._store.save(step=step, tensors=tensors, state=state)
            self._publish("trying again with the next checkpoint")

    def publish_rest(self) -> None:
        """Publishes before the process ends what could not be published before.

        Raises:
            OSError: it still cannot be.
            UsageError: another process has taken the run over.
        """
        if self._is_behind and self._mirror is not None:
            self._mirror.publish()
            self._is_behind = False

    def save_aside(
        self, *, step: int, tensors: dict[str, np.ndarray], state: dict[str, Any]
    ) -> Path | None:
        """Writes a checkpoint to `failed/`, where no run resumes from.

        Returns:
            Its path; None if nothing is kept, or if it could not be published.
        """
        if not self._writes or self.directory is None or self.place is None:
            return None
        name = f"failed/step-{step:08d}"
        write_checkpoint(self.directory / name, step=step, tensors=tensors, state=state)
        self._publish("the state at the failure is not kept")
        return None if self._is_behind else self.place / name

    def _publish(self, consequence: str) -> None:
        if self._mirror is None:
            return
        try:
            self._mirror.publish()
        except OSError as error:
            self._is_behind = True
            self._console.warn(f"{self.place}: cannot be written ({error}); {consequence}")
        else:
            self._is_behind = False
