"""Where the output of a job lies, the files beside it, and whether it can be written there."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from bert_tf.base.errors import UsageError
from pipeline.beam.stored_path import path_of
from pipeline.outputs.inputs import holds_records
from pipeline.outputs.job_log import LOG, OLDER
from pipeline.outputs.manifest import LOCK, SECONDS, rejects_path, side_paths

_FILE_ENDING = re.compile(r"(?<=[^/])\.[A-Za-z]{2,8}\d?$", re.ASCII)
_STANDARD_OUTPUT = "-"


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

    @property
    def rejects(self) -> Path:
        return rejects_path(self.output)

    def _note(self, inside: str, beside: str) -> Path:
        path = self.path
        return path / inside if self.is_directory else path.with_name(beside.format(path.name))


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
    source = path_of(path).resolve()
    output = place.path.resolve()
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
