"""A run on other storage, which is written in a folder of this machine and published from there.

Event files, renamed checkpoint folders, and appended lines need a file system. Changes are
published after each checkpoint; its state is uploaded last and commits it. So a run that is killed
while it publishes leaves the checkpoint before, and metrics and a model that may be newer.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath

from bert_tf.base.checksums import SUMS, check_sums, file_sha256
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.base.files import RemotePath
from bert_tf.base.wording import quantity
from bert_tf.data.records.dataset_info import TOKEN_COUNTS_FILE, PretrainingData
from bert_tf.training.run_files import STATE_FILE
from pipeline.beam.stored_path import copy_files, path_of
from pipeline.outputs.manifest import WORKING_FOLDERS, is_content, read_manifest


def fetched_records(data: PretrainingData, folder: Path, console: Console) -> PretrainingData:
    """Copy records to a local folder, unless they are local.

    Args:
        data: the records.
        folder: of this machine, empty.

    Returns:
        The same records in that folder.

    Raises:
        InputError: a file is damaged.
    """
    source = path_of(data.directory)
    if not isinstance(source, RemotePath):
        return data
    outputs = (read_manifest(source) or {}).get("outputs", [])
    names = [*data.train_shards, *data.eval_shards, "vocab.txt"]
    if (source / TOKEN_COUNTS_FILE).is_file():
        names.append(TOKEN_COUNTS_FILE)
    console.info(f"{source}: copying {quantity(len(names), 'file')} to {folder}")
    sums = {folder / each["path"]: each["sha256"] for each in outputs}
    copy_files({folder / name: source / name for name in names}, sums)
    return dataclasses.replace(data, directory=str(folder))


_CHECKPOINTS = "checkpoints"
_BEST = "best"

# Size and time of change of a file; None if the other storage may hold another version.
_State = tuple[int, int] | None


class StoredRun:
    """A `RunMirror` of a run on other storage.

    Args:
        place: the run.
        folder: of this machine, empty.
        console: receives a note on copies.
        check_held: raises an error if another process has taken the run over; None for workers that
            only fetch checkpoints and the best model.
    """

    def __init__(
        self, place: Path, folder: Path, *, console: Console, check_held: Callable[[], None] | None
    ):
        self.place = place
        self.folder = folder
        self._console = console
        self._check_held = check_held
        self._published: dict[str, _State] | None = None

    def fetch(self) -> None:
        if self._published is not None:
            return
        stored = _names(self.place)
        wanted = [name for name in stored if self._is_wanted(name, stored)]
        if wanted:
            self._console.info(
                f"{self.place}: copying {quantity(len(wanted), 'file')} of the run to {self.folder}"
            )
        copy_files({self.folder / name: self.place / name for name in wanted})
        best = self.folder / _BEST
        is_whole = (best / SUMS).is_file()
        try:
            check_sums(best)
        except InputError:
            is_whole = False
        if not is_whole:  # the process was killed while it published another one
            shutil.rmtree(best, ignore_errors=True)
        self._published = {name: _state(self.folder / name) for name in stored}

    def publish(self) -> None:
        """Upload changed files, see `RunMirror`.

        Raises:
            OSError: storage cannot be written.
            UsageError: another process took the run over.
        """
        if self._check_held is None:
            return
        self._check_held()
        if self._published is None:
            self._published = {}
        published = self._published
        states = {name: _state(self.folder / name) for name in _names(self.folder)}
        changed = [name for name, state in states.items() if published.get(name) != state]
        checkpoints = [name for name in changed if PurePath(name).parts[0] == _CHECKPOINTS]
        counting = [name for name in checkpoints if PurePath(name).name == STATE_FILE]
        # Storage may hold any version of these until their upload is done.
        published.update(dict.fromkeys(changed))
        self._upload(set(changed).difference(checkpoints))
        self._upload(set(checkpoints).difference(counting))
        self._check_held()  # uploads take minutes
        self._upload(counting)
        published.update(states)
        gone = published.keys() - states.keys()
        if gone:
            self._check_held()
        # A checkpoint loses its state first, so that none counts without its variables.
        for name in sorted(gone, key=lambda name: PurePath(name).name != STATE_FILE):
            (self.place / name).unlink(missing_ok=True)
            del published[name]

    def sha256(self) -> dict[str, str]:
        """Return the hash of the run's files, by path."""
        return {
            name: file_sha256(self.folder / name)
            for name in _names(self.folder)
            if PurePath(name).parts[0] not in WORKING_FOLDERS
        }

    def _is_wanted(self, name: str, stored: list[str]) -> bool:
        """Return whether a process needs a stored file: no checkpoint without its state."""
        path = PurePath(name)
        if path.parts[0] != _CHECKPOINTS:
            return path.parts[0] == _BEST or self._check_held is not None
        return str(path.with_name(STATE_FILE)) in stored

    def _upload(self, names: Iterable[str]) -> None:
        copy_files({self.place / name: self.folder / name for name in names})


def _names(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(filter(is_content, (str(path.relative_to(folder)) for path in files)))


def _state(path: Path) -> _State:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns
