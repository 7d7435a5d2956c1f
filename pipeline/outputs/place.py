"""The output of a job, the files beside it, and which of them a job may replace."""

from __future__ import annotations

import dataclasses
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from bert_tf.base.checksums import read_sums
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.plain_yaml import LARGEST_YAML_BYTES, read_yaml_file
from bert_tf.config.sections import SECTIONS
from bert_tf.engines.registry import ENGINES, exported_folder
from pipeline.beam.stored_path import path_of
from pipeline.outputs.job_log import LOG, OLDER
from pipeline.outputs.manifest import (
    JOB_FILES,
    LOCK,
    SECONDS,
    holds_records,
    manifest_path,
    read_manifest,
    side_paths,
)

_FILE_ENDING = re.compile(r"(?<=[^/])\.[A-Za-z]{2,8}\d?$", re.ASCII)
_STANDARD_OUTPUT = "-"
# The largest config file and the longest command line, which has at most 2 MiB.
_LARGEST_MARKER_BYTES = 8 * LARGEST_YAML_BYTES


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputPlace:
    """Where an output goes, and the files that its job writes beside it.

    Attributes:
        output: the file or folder, as it was given.
        is_directory: which of the two it is.
        temporary: folder of intermediate data, in the output or beside it; None for none.
        may_be_remote: whether the job can write to other storage, by a URL.
    """

    output: str
    is_directory: bool
    temporary: Path | None = None
    may_be_remote: bool = False

    @property
    def path(self) -> Path:
        return path_of(self.output)

    @property
    def marker(self) -> Path:
        return self._note("config.yaml", ".{}.config.yaml")

    @property
    def seconds(self) -> Path:
        return self._note(SECONDS, f".{{}}{SECONDS}")

    @property
    def lock(self) -> Path:
        """Return the path of the lock, in a folder or beside a file."""
        return self._note(LOCK, f".{{}}{LOCK}")

    @property
    def log(self) -> Path:
        return self._note(LOG, f"{{}}.{LOG}")

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the output and, beside a file, its manifest and lists of rows."""
        return (self.path,) if self.is_directory else (self.path, *side_paths(self.output))

    @property
    def all_paths(self) -> tuple[Path, ...]:
        temporary = (self.temporary,) if self.temporary is not None else ()
        logs = (self.log, self.log.with_name(self.log.name + OLDER))
        return (*self.files, self.marker, self.seconds, self.lock, *logs, *temporary)

    def _note(self, inside: str, beside: str) -> Path:
        path = self.path
        return path / inside if self.is_directory else path.with_name(beside.format(path.name))


def read_marker(marker: Path, section_name: str = "") -> dict[str, Any] | None:
    """Read a marker of `section_name` or one of `SECTIONS`; None for anything else.

    Args:
        marker: the file.
        section_name: of a section that only some jobs have.

    Returns:
        `{section: values}`.
    """
    try:
        document = read_yaml_file(marker, _LARGEST_MARKER_BYTES)
    except (FileNotFoundError, IsADirectoryError, UnicodeDecodeError, yaml.YAMLError):
        return None
    if not isinstance(document, dict) or len(document) != 1:
        return None
    ((name, values),) = document.items()
    is_known = name == section_name or name in SECTIONS
    return document if is_known and isinstance(values, dict) and "output" in values else None


def check_finished(folder: str | Path) -> None:
    """Raise UsageError if a job has begun to write a folder and has not finished it."""
    marker = OutputPlace(output=str(folder), is_directory=True).marker
    if read_marker(marker) is not None and read_manifest(folder) is None:
        raise UsageError(f"{folder}: is not finished; run the command that makes it again")


def exported_model(path: str, console: Console) -> str:
    """Return the folder of a model, the newest version in a layout for TensorFlow Serving.

    Warns of a SavedModel that has no checksums of ours, since running a graph can do any harm.

    Raises:
        UsageError: the layout is unfinished.
    """
    folder = exported_folder(path)
    graph = ENGINES["tensorflow"].model_file
    if (folder / graph).is_file() and graph not in read_sums(folder):
        console.warn(
            f"{folder}: {graph} has no checksum of bert-pipeline; it may read and write any "
            "of your files when it runs, so only run it if you trust its origin"
        )
    if folder == Path(path):
        return path
    check_finished(path)
    return str(folder)


def check_folder_name(output: str, instead: str) -> None:
    """Raise UsageError for an output folder named like a file of an unsupported format.

    An existing folder, or a name that ends in `/`, passes.

    Args:
        output: as it was given.
        instead: advice for the message.
    """
    ending = _FILE_ENDING.search(output)
    if ending is not None and not path_of(output).is_dir():
        raise UsageError(
            f"--output {output}: {ending[0]} is not a format of this command; {instead}"
        )


def check_place(place: OutputPlace, inputs: list[str], *, flag: str = "--output") -> None:
    """Reject an output that cannot be written, or that would change an input.

    Args:
        place: the output.
        inputs: paths of all inputs.
        flag: the option that names the output, for messages.

    Raises:
        UsageError: its storage cannot be written, it is of the other kind or in an input folder, it
            or a file beside it is or holds an input, or a name is not UTF-8.
    """
    for path in (place.output, *inputs):
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(f"{path!r}: this name is not UTF-8; rename it") from None
    if place.output == _STANDARD_OUTPUT:
        raise UsageError(
            f"{flag} -: results and their manifest are written to files, not to standard output; "
            "give a file or a folder"
        )
    if "://" in place.output:
        if not place.may_be_remote:
            raise UsageError(
                f"{place.output}: this command writes to this machine's file system; give a local "
                "path or the path under which that storage is mounted here, or copy the output "
                "afterwards"
            )
        from pipeline.beam.storage import check_scheme  # Beam: other jobs need not load it

        check_scheme(place.output)
    for path in inputs:
        _check_no_change(path, place, flag)
    if place.is_directory and place.path.exists() and not place.path.is_dir():
        raise UsageError(f"{flag} {place.output}: is a file; give a folder")
    if not place.is_directory and place.path.is_dir():
        raise UsageError(f"{flag} {place.output}: is a folder; name a file")


def _check_no_change(path: str, place: OutputPlace, flag: str) -> None:
    """Raise UsageError if an output, or a file beside it, would change an input."""
    source, output = path_of(path).resolve(), place.path.resolve()
    if output == source or output in source.parents:
        raise UsageError(
            f"{flag} {place.output}: is or contains the input {path}, which it would replace; "
            "choose another path"
        )
    if source in output.parents and not holds_records(source):
        raise UsageError(
            f"{flag} {place.output}: is inside the input {path}, which it would change; choose "
            "another path"
        )
    for written in place.all_paths:
        if written.resolve() == source or written.resolve() in source.parents:
            raise UsageError(
                f"{flag} {place.output}: would also replace {written}, which is or contains the "
                f"input {path}; choose another path"
            )


def check_is_ours(place: OutputPlace, section_name: str, *, overwrite: bool) -> None:
    """Raise UsageError if an unfinished output would replace data that this tool did not make.

    With `overwrite`, any file may be replaced, but no folder.
    """
    path, marker = place.path, place.marker
    if read_marker(marker, section_name) is not None:
        return
    if place.is_directory and (content_of(path) or marker.exists()):
        raise UsageError(
            f"{path}: contains files that bert-pipeline did not make; choose an empty folder"
        )
    if not place.is_directory and path.exists() and not overwrite:
        raise UsageError(
            f"{path}: exists but was not made by this command; "
            "choose another --output or replace it with --overwrite"
        )


def check_beside(place: OutputPlace, *, is_marked: bool, overwrite: bool) -> None:
    """Reject files beside an output that neither its manifest nor its marker vouches for.

    With `overwrite`, any file may be replaced, but no folder.
    """
    if is_marked:
        return
    temporary = place.temporary
    if temporary is not None and (temporary.exists() or temporary.is_symlink()):
        raise UsageError(
            f"{temporary}: --output {place.output} needs this path for temporary files; move or "
            "remove it, or choose another --output"
        )
    beside = (*place.files[1:], place.marker, place.seconds)
    for path in beside:
        if path.is_dir():
            raise UsageError(
                f"{path}: is a folder where --output {place.output} needs a file; move it, or "
                "choose another --output"
            )
    is_made_by_us = False
    with suppress(InputError):
        is_made_by_us = "manifest_version" in (read_manifest(place.path) or {})
    if overwrite or is_made_by_us:
        return
    for path in beside:
        if path.exists() or path.is_symlink():
            raise UsageError(
                f"{path}: exists but was not made by this command, which would replace it; move "
                "it, choose another --output or replace it with --overwrite"
            )


def content_of(folder: Path) -> list[Path]:
    """Return files and folders in a folder, without the job's own notes on it."""
    if not folder.is_dir():
        return []
    return [
        path
        for path in folder.iterdir()
        if path.name not in JOB_FILES or path == manifest_path(folder)
    ]
