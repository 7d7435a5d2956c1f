"""The output of one run of a job: its manifest, the mark of unfinished work, and its content."""

from __future__ import annotations

import functools
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import yaml

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.config.plain_yaml import LARGEST_YAML_BYTES, read_yaml_file, yaml_text
from bert_tf.config.section import Section
from bert_tf.config.sections import SECTIONS
from bert_tf.engines.registry import exported_model
from pipeline.outputs.manifest import JOB_FILES, manifest_path, read_manifest
from pipeline.outputs.place import OutputPlace

# The largest config file and the longest command line, which has at most 2 MiB.
_LARGEST_MARKER_BYTES = 8 * LARGEST_YAML_BYTES


class JobFolder:
    """The output of one run of a job, which is passed on instead of paths.

    Most outputs are folders; that of `score`, for example, may be a file with its notes beside it.
    What is read of an output is read once, when it is first asked for.

    Args:
        place: the output and the files beside it.
        section_name: of the config of its job, for sections that only some jobs have.
    """

    def __init__(self, place: OutputPlace, section_name: str = ""):
        self.place = place
        self.path = place.path
        self._section_name = section_name

    @classmethod
    def at(cls, path: str | Path) -> Self:
        """Return the folder that a job has made, or is making."""
        return cls(OutputPlace(output=str(path), is_directory=True))

    @functools.cached_property
    def manifest(self) -> dict[str, Any] | None:
        """The manifest, None if the output is not finished; InputError if it is damaged."""
        return read_manifest(self.path)

    @functools.cached_property
    def marker(self) -> dict[str, Any] | None:
        """The section of the config that the output is made with, by its name; None for none."""
        return read_marker(self.place.marker, self._section_name)

    @property
    def is_begun(self) -> bool:
        """Whether a job has begun to write a folder, and has not finished it."""
        return self.marker is not None and self.manifest is None

    def content(self) -> list[Path]:
        """Return files and folders in a folder, without the job's own notes on it."""
        if not self.path.is_dir():
            return []
        return [
            path
            for path in self.path.iterdir()
            if path.name not in JOB_FILES or path == manifest_path(self.path)
        ]

    def mark(self, config: Section) -> None:
        """Write the config that the output is made with until its manifest is there."""
        write_text_atomically(self.place.marker, yaml_text({config.section_name: config.as_dict()}))

    def check_is_ours(self, *, overwrite: bool) -> None:
        """Raise UsageError if an unfinished output would replace data that this tool did not make.

        With `overwrite`, any file may be replaced, but no folder.
        """
        if self.marker is not None:
            return
        if self.place.is_directory and (self.content() or self.place.marker.exists()):
            raise UsageError(
                f"{self.path}: contains files that bert-pipeline did not make; choose an empty "
                "folder"
            )
        if not self.place.is_directory and self.path.exists() and not overwrite:
            raise UsageError(
                f"{self.path}: exists but was not made by this command; "
                "choose another --output or replace it with --overwrite"
            )

    def check_beside(self, *, overwrite: bool) -> None:
        """Reject files beside an output that neither its manifest nor its marker vouches for.

        With `overwrite`, any file may be replaced, but no folder.

        Raises:
            UsageError: there is such a file.
        """
        if self.marker is not None:
            return
        place = self.place
        temporary = place.temporary
        if temporary is not None and (temporary.exists() or temporary.is_symlink()):
            raise UsageError(
                f"{temporary}: --output {place.output} needs this path for temporary files; move "
                "or remove it, or choose another --output"
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
            is_made_by_us = "manifest_version" in (self.manifest or {})
        if overwrite or is_made_by_us:
            return
        for path in beside:
            if path.exists() or path.is_symlink():
                raise UsageError(
                    f"{path}: exists but was not made by this command, which would replace it; "
                    "move it, choose another --output or replace it with --overwrite"
                )


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
    if JobFolder.at(folder).is_begun:
        raise UsageError(f"{folder}: is not finished; run the command that makes it again")


def finished_model(path: str, console: Console) -> str:
    """Return the folder of a model that is about to run; see `exported_model`.

    Raises:
        UsageError: it lies in a layout for TensorFlow Serving that is not finished.
    """
    model = exported_model(path, console)
    if model != path:
        check_finished(path)
    return model
