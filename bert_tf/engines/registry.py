"""Every engine by its name on the command line; an engine is imported when it is loaded."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.base.checksums import check_sums
from bert_tf.base.errors import UsageError, no_folder

if TYPE_CHECKING:
    from bert_tf.engines.engine import Engine

AUTO = "auto"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineEntry:
    """An engine that need not be imported, or installed, to be known.

    Attributes:
        name: on the command line and in manifests.
        module: with the function `load`; see `Engine`.
        packages: what must be importable for it.
        model_file: name of the file that makes an exported folder one that it loads.
        other_files: what else it reads there: names, and folders with a slash at the end.
    """

    name: str
    module: str
    packages: tuple[str, ...]
    model_file: str
    other_files: tuple[str, ...] = ()

    def is_installed(self) -> bool:
        """Whether its packages are there; imports none of them."""
        return all(importlib.util.find_spec(package) is not None for package in self.packages)

    def can_load(self, folder: Path) -> bool:
        """Whether an exported folder has the model in this engine's format."""
        return (folder / self.model_file).is_file()

    def reads(self, name: str) -> bool:
        """Whether it reads a file, named by its path in an exported folder."""
        folders = tuple(other for other in self.other_files if other.endswith("/"))
        return name in (self.model_file, *self.other_files) or name.startswith(folders)

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        """Imports the engine and loads a model.

        Args:
            folder: an exported folder.
            threads: of one operation; None leaves all cores to the process.
            is_checked: whether the files that the engine reads have been compared with the
                folder's `SHA256SUMS` already.

        Raises:
            UsageError, InputError: as `Engine`.
            InputError: a file that it reads is not the one that `SHA256SUMS` vouches for.
        """
        check_is_exported(folder)
        if not is_checked:
            check_sums(Path(folder), self.reads)
        engine: Engine = importlib.import_module(self.module).load(Path(folder), threads=threads)
        return engine


# In the order in which `auto` prefers them.
ENGINES: dict[str, EngineEntry] = {
    entry.name: entry
    for entry in (
        EngineEntry(
            name="tensorflow",
            module="bert_tf.engines.saved_model",
            packages=("tensorflow", "tensorflow_text"),
            model_file="saved_model.pb",
            other_files=("fingerprint.pb", "task.json", "assets/", "variables/"),
        ),
    )
}


class EngineChoices(Collection[str]):
    """The values of a config key `engine`: `auto` and what is registered whenever it is asked."""

    def __contains__(self, name: object) -> bool:
        return name == AUTO or name in ENGINES

    def __iter__(self) -> Iterator[str]:
        return iter((AUTO, *ENGINES))

    def __len__(self) -> int:
        return 1 + len(ENGINES)


def is_exported(folder: str | Path) -> bool:
    """Whether a folder has an exported model, of any engine's format."""
    return any(entry.can_load(Path(folder)) for entry in ENGINES.values())


def exported_folder(path: str | Path) -> Path:
    """The folder with the model: of one for TensorFlow Serving that of its newest version."""
    folder = Path(path)
    if is_exported(folder) or not folder.is_dir():
        return folder
    versions = [
        child for child in folder.iterdir() if child.name.isdecimal() and is_exported(child)
    ]
    return max(versions, key=lambda version: int(version.name), default=folder)


def check_is_exported(folder: str | Path) -> None:
    """Checks that a folder is an exported model.

    Raises:
        UsageError: there is no such folder, or no engine's format is in it.
    """
    path = Path(folder)
    if not path.is_dir():
        raise no_folder(path, "model directory")
    if is_exported(path):
        return
    if (path / "checkpoints").is_dir() or (path / "best").is_dir():
        raise UsageError(
            f"{path}: is a run, not an exported model; "
            f"run bert-pipeline export --run {path} --output DIR first"
        )
    files = " or ".join(dict.fromkeys(entry.model_file for entry in ENGINES.values()))
    raise UsageError(
        f"{path}: is not an exported model (it has no {files}); "
        "make one with bert-pipeline export --run RUN --output DIR"
    )


def resolve_engine(name: str, folder: str | Path) -> EngineEntry:
    """The engine that runs a model: the one asked for, or the first that is installed and able to.

    Args:
        name: of an engine, or `auto`.
        folder: an exported folder.

    Raises:
        UsageError: the folder is not an exported model, or the engine is not installed or has no
            model of its format there.
    """
    path = Path(folder)
    check_is_exported(path)
    able = [entry for entry in ENGINES.values() if entry.can_load(path)]
    if name == AUTO:
        for entry in able:
            if entry.is_installed():
                return entry
        raise UsageError(
            f"{path}: none of the engines that can load it is installed; install the packages of "
            + " or ".join(f"{entry.name} ({', '.join(entry.packages)})" for entry in able)
        )
    entry = ENGINES[name]
    if entry not in able:
        raise UsageError(
            f"--engine {name}: {path} has no {entry.model_file}, which this engine loads; "
            f"take --engine {' or '.join(other.name for other in able)}"
        )
    if not entry.is_installed():
        raise UsageError(
            f"--engine {name}: needs {' and '.join(entry.packages)}, not installed here; "
            "install that, or let --engine auto choose"
        )
    return entry
