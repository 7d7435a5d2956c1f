"""The files of a run: checkpoints, metrics.jsonl, and their copy on other storage.

`checkpoints/step-00001000/` holds `state.safetensors` (all variables) and `state.json` (step,
seconds, input position, SHA-256 of the tensors and of its own content). A checkpoint appears under
its name only when it is complete, and is checked by its hashes when it is read. If the newest one
is damaged, the run resumes from the one before.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from bert_tf.base.checksums import file_sha256
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import remove_leftovers, replacing_directory
from bert_tf.base.json_files import read_if_sound, read_sealed, sealed
from bert_tf.config.registries import TENSORBOARD
from bert_tf.training.metrics_log import Line, MetricsLog

STATE_FILE = "state.json"
_TENSORS = "state.safetensors"
_NAME = re.compile(r"step-(\d{8,})")  # of a checkpoint's folder


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that has been read and verified.

    Attributes:
        path: its folder.
        step: steps done.
        tensors: values of the variables by name, see `variables_by_name`.
        state: content of `state.json`, see `RunState`.
    """

    path: Path
    step: int
    tensors: dict[str, np.ndarray]
    state: dict[str, Any]


def write_checkpoint(
    path: Path, *, step: int, tensors: dict[str, np.ndarray], state: dict[str, Any]
) -> None:
    """Write a checkpoint folder; it appears, or replaces another, only when complete.

    Args:
        path: the folder.
        step: steps done.
        tensors: values of the variables by name.
        state: JSON values; `step` and the SHA-256 of the tensors are added.
    """
    with replacing_directory(path) as aside:
        save_file(tensors, aside / _TENSORS)
        document = {**state, "step": step, "tensors_sha256": file_sha256(aside / _TENSORS)}
        (aside / STATE_FILE).write_text(sealed(document, indent=2), encoding="utf-8")


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint folder and verify its hashes.

    Raises:
        InputError: a file is missing or damaged.
    """
    try:
        state = read_sealed(path / STATE_FILE)
        if file_sha256(path / _TENSORS) != state["tensors_sha256"]:
            raise InputError(f"{path / _TENSORS}: its SHA-256 is not the one in {STATE_FILE}")
        return Checkpoint(path, int(state["step"]), load_file(path / _TENSORS), state)
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(f"{path}: damaged checkpoint ({error})") from None


def saved_progress(directory: Path) -> tuple[int, int] | None:
    """Return the steps done and in all of the newest checkpoint; None without one.

    Args:
        directory: folder `checkpoints` of a run. Tensors are not read.
    """
    for step, path in _folders(directory):
        state = read_if_sound(path / STATE_FILE)
        if state is not None and "total_steps" in state:
            return step, int(state["total_steps"])
    return None


class CheckpointStore:
    """The newest checkpoints of a run.

    Args:
        directory: folder `checkpoints` of the run.
        keep: number of checkpoints to keep; older ones are removed after a new one is complete.
        writes: whether this process may move damaged checkpoints; only one process of a run may.
        console: receives warnings of damaged checkpoints.
    """

    def __init__(self, directory: Path, *, keep: int, writes: bool, console: Console):
        self._directory = directory
        self._keep = keep
        self._writes = writes
        self._console = console

    def save(self, *, step: int, tensors: dict[str, np.ndarray], state: dict[str, Any]) -> Path:
        """Write a checkpoint and remove old ones; return its path."""
        path = self._directory / f"step-{step:08d}"
        write_checkpoint(path, step=step, tensors=tensors, state=state)
        for _, old in self._folders()[self._keep :]:
            shutil.rmtree(old)
        return path

    def newest(self) -> Checkpoint | None:
        """Return the newest undamaged checkpoint; None if there are no checkpoints.

        The process that writes moves damaged ones to `damaged-step-…`, so that the next save does
        not count them among those to keep.

        Raises:
            InputError: all are damaged; they stay where they are.
        """
        folders = self._folders()
        damaged = []
        for _, path in folders:
            try:
                checkpoint = read_checkpoint(path)
            except InputError as error:
                self._console.warn(f"{error}; trying the one before")
                damaged.append(path)
                continue
            if self._writes:
                for each in damaged:
                    self._move_aside(each)
            return checkpoint
        if folders:
            raise InputError(
                f"{self._directory}: all checkpoints are damaged; start again with --overwrite"
            )
        return None

    def _move_aside(self, path: Path) -> None:
        aside = path.with_name(f"damaged-{path.name}")
        shutil.rmtree(aside, ignore_errors=True)
        with suppress(FileNotFoundError):  # another process has removed it
            path.rename(aside)
            self._console.warn(f"moved {path} to {aside.name}")

    def _folders(self) -> list[tuple[int, Path]]:
        return _folders(self._directory)


def _folders(directory: Path) -> list[tuple[int, Path]]:
    """Return (step, path) of all checkpoint folders, the newest first."""
    if not directory.is_dir():
        return []
    matches = [(_NAME.fullmatch(path.name), path) for path in directory.iterdir()]
    return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)


def variables_by_name(variables: dict[str, list[Any]]) -> dict[str, Any]:
    """Return variables as `group/number`, such as `model/0003`.

    Keras' own names are unsuitable for checkpoints: their numbers depend on the layers that the
    process has built before.
    """
    return {
        f"{group}/{number:04d}": variable
        for group, members in variables.items()
        for number, variable in enumerate(members)
    }


def read_values(variables: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the values of variables by name; of mirrored variables the first copy."""
    return {name: _value(variable) for name, variable in variables.items()}


def assign_values(variables: dict[str, Any], checkpoint: Checkpoint) -> None:
    """Assign the tensors of a checkpoint to the variables of the same names.

    Raises:
        UsageError: names or shapes differ, so the checkpoint belongs to another model. Nothing has
            been assigned.
    """
    saved = {name: _shape(tensor) for name, tensor in checkpoint.tensors.items()}
    current = {name: _shape(variable) for name, variable in variables.items()}
    differences = [
        f"{name} is {saved.get(name, 'missing')} in the checkpoint, "
        f"{current.get(name, 'missing')} in the model"
        for name in sorted(saved.keys() | current.keys())
        if saved.get(name) != current.get(name)
    ]
    if differences:
        more = f" and {len(differences) - 1} more" if len(differences) > 1 else ""
        raise UsageError(
            f"{checkpoint.path}: the checkpoint of another model ({differences[0]}{more}); "
            "choose another --output or start again with --overwrite"
        )
    for name, variable in variables.items():
        variable.assign(checkpoint.tensors[name])


def _value(variable: Any) -> np.ndarray:
    if isinstance(variable, keras.Variable):
        variable = variable.value
    return np.asarray(tf.convert_to_tensor(variable))


def _shape(value: Any) -> str:
    return str(list(value.shape))


class RunMirror(Protocol):
    """Other storage that receives a run after each of its checkpoints."""

    @property
    def place(self) -> Path:
        """The run there, for messages."""

    def fetch(self) -> None:
        """Fill the run directory of this machine from there, once in a process.

        Called when all workers train together, so that none sees files that another is about to
        remove.
        """

    def publish(self) -> None:
        """Copy changes of the run directory there, each checkpoint as a whole; only for writing
        workers.

        Raises:
            OSError: the storage cannot be written; the caller tries again.
            UsageError: another process has taken over the run.
        """


class RunFiles:
    """The files of one run.

    Args:
        directory: run directory on this machine; None keeps nothing.
        writes: whether this process writes; False for workers other than the chief.
        keep_checkpoints: number of checkpoints to keep.
        console: receives warnings.
        mirror: other storage that receives the run; None if `directory` is its place.
        trackers: names from `TRACKERS`.
        settings: values of the config by key, for trackers; None for none.
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
        self._is_behind = False  # whether the mirror lacks something of the run directory
        self.writes = writes and directory is not None
        self._log: MetricsLog | None = None
        self._store: CheckpointStore | None = None
        if directory is not None:
            self._store = CheckpointStore(
                directory / "checkpoints", keep=keep_checkpoints, writes=writes, console=console
            )

    @property
    def place(self) -> Path | None:
        """The run as users know it, for messages; None if nothing is kept."""
        return self._mirror.place if self._mirror is not None else self.directory

    def newest_checkpoint(self) -> Checkpoint | None:
        """Return the newest undamaged checkpoint, see `CheckpointStore.newest`.

        First fetches the run from the mirror, and removes incomplete folders that a killed process
        left behind.
        """
        if self._mirror is not None:
            self._mirror.fetch()
        if self.writes and self.directory is not None:
            for folder in ("checkpoints", "failed", "."):
                remove_leftovers(self.directory / folder)
        return self._store.newest() if self._store is not None else None

    def open_log(self, *, keep_until: Mapping[str, int]) -> None:
        """Open metrics.jsonl without lines of later steps; see `MetricsLog`."""
        if self.writes and self.directory is not None:
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
        """Write a checkpoint, remove old ones and publish it.

        If the mirror cannot be written, the next checkpoint or `publish_rest` tries again.

        Raises:
            UsageError: another process has taken over the run.
        """
        if self.writes and self._store is not None:
            self._store.save(step=step, tensors=tensors, state=state)
            self._publish("trying again with the next checkpoint")

    def publish_rest(self) -> None:
        """Publish the files that could not be published earlier; called at the end of the process.

        Raises:
            OSError: the mirror still cannot be written.
            UsageError: another process has taken over the run.
        """
        if self._is_behind and self._mirror is not None:
            self._mirror.publish()
            self._is_behind = False

    def save_aside(
        self, *, step: int, tensors: dict[str, np.ndarray], state: dict[str, Any]
    ) -> Path | None:
        """Write a checkpoint to `failed/`, from where no run resumes.

        Returns:
            Its path; None if nothing is kept, or if it could not be published.
        """
        if not self.writes or self.directory is None or self.place is None:
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
