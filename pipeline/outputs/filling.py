"""One process fills a folder or file, then its manifest, written last, seals it.

An output is finished if and only if it has a manifest. While it is being made, a marker says by
which config: `config.yaml` in a folder, `.FILE.config.yaml` beside a file. So whenever a job is
killed, the next command knows if the content is its own to resume, its own to replace, or somebody
else's to refuse. The order of writes keeps that true: the marker is there before any
content, an old manifest goes before the content that it vouches for, and the marker goes after the
new manifest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import (
    RemotePath,
    make_folders,
    remove,
    remove_leftovers,
    replacing_file,
)
from bert_tf.base.json_files import read_sealed, write_sealed
from pipeline.outputs.inputs import are_same_contents
from pipeline.outputs.job_folder import JobFolder
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import INPUTS, JOB_FILES, manifest_path
from pipeline.outputs.place import OutputPlace


@contextmanager
def filling_folder(
    spec: JobSpec, inputs: list[dict[str, Any]], options: RunOptions
) -> Iterator[None]:
    """Prepare a folder for the block to fill, with `config.yaml` as the mark of its job.

    A block that fails before it has written anything leaves the folder as empty as it was; if it
    has only listed rejected rows, any config may follow.

    Args:
        spec: the job.
        inputs: fingerprints, kept beside the config: a run must not be resumed on other inputs.
        options: whether to overwrite, and the console.

    Raises:
        UsageError: the folder was not made by this tool, or contains an unfinished run with another
            config or from other inputs.
    """
    folder = spec.open_folder()
    overwrite = options.overwrite
    place = folder.place
    path = folder.path
    remove_leftovers(path, JOB_FILES)  # of a run that ended before its marker was there
    content = folder.content()
    folder.check_is_ours(overwrite=overwrite)
    # Rows may have been rejected before the work with them began.
    starts_anew = overwrite or content == [place.rejects]
    is_extended = bool(content) and not starts_anew and spec.check_marker(folder.marker)
    if content and (starts_anew or not spec.can_resume):
        _check_removable(content)
        # First, so that no manifest vouches for a half-removed folder.
        manifest_path(path).unlink(missing_ok=True)
        for each in content:
            remove(each)
    elif content:
        _check_same_inputs(path, inputs)
        state = "an unfinished run with the same config; resuming it"
        if is_extended:
            state = f"a run with fewer {spec.extendable_key}; extending it"
        if not spec.is_update:
            options.console.info(f"{path}: found {state}")
        for each in (path, *_folders_in(path)):
            remove_leftovers(each)
    make_folders(path)
    write_sealed(path / INPUTS, {"inputs": inputs, **spec.choices})
    folder.mark(spec.config)
    try:
        yield
    except BaseException:
        if not folder.content():
            for note in (place.marker, path / INPUTS, place.seconds):
                note.unlink(missing_ok=True)
        raise
    (path / INPUTS).unlink(missing_ok=True)


@contextmanager
def filling_file(spec: JobSpec, options: RunOptions) -> Iterator[None]:
    """Mark a file, unless finished, for the block to write; the block writes the manifest last.

    If the block fails before it has replaced the file or its neighbors, all are as before.

    Args:
        spec: the job.
        options: whether to overwrite.

    Raises:
        UsageError: the file or a neighbor was not made by this tool, or is an unfinished one of
            another config.
    """
    folder = spec.open_folder()
    place = folder.place
    marker = folder.place.marker
    marked = folder.marker
    if marked is not None and folder.path.exists() and not options.overwrite:
        spec.check_marker(marked)
    folder.check_is_ours(overwrite=options.overwrite)
    folder.check_beside(overwrite=options.overwrite)
    names = [file.name for file in (*place.files, marker, place.seconds)]
    remove_leftovers(folder.path.parent, names)
    manifest = manifest_path(folder.path)
    vouched = manifest.read_bytes() if manifest.is_file() else None
    folder.mark(spec.config)
    manifest.unlink(missing_ok=True)
    before = _state(place)
    try:
        yield
    except BaseException:
        is_untouched = _state(place) == before
        if is_untouched and vouched is not None:
            with replacing_file(manifest) as aside:
                aside.write_bytes(vouched)
        is_there = any(path.exists() for path in place.files) or _is_begun(place)
        if not is_there or (is_untouched and marked is None and not _is_begun(place)):
            marker.unlink(missing_ok=True)
            place.seconds.unlink(missing_ok=True)
        raise
    marker.unlink(missing_ok=True)


def remove_marks(folder: JobFolder) -> None:
    """Remove the marks left by a job that was killed after it wrote its manifest."""
    place = folder.place
    if place.is_directory:
        marks = [folder.path / INPUTS]
    elif folder.marker is None:
        return
    else:
        marks = [place.marker]
    for path in (place.temporary, *marks):
        if path is not None and path.exists():
            remove(path)


def _folders_in(folder: Path) -> Iterator[Path]:
    """Yield all folders inside, except links."""
    if isinstance(folder, RemotePath):
        yield from {path.parent for path in folder.rglob("*")} - {folder}
        return
    for place, names, _ in os.walk(folder):
        inside = (Path(place, name) for name in names)
        yield from (path for path in inside if not path.is_symlink())


def _check_removable(content: list[Path]) -> None:
    """Check permissions before anything is removed, so that all or nothing is removed."""
    if any(isinstance(path, RemotePath) for path in content):
        return
    folders = [path for path in content if path.is_dir() and not path.is_symlink()]
    for folder in (*folders, *(inner for each in folders for inner in _folders_in(each))):
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise UsageError(
                f"{folder}: cannot be removed because of its permissions; nothing was removed; "
                "change them or choose another --output"
            )


def _check_same_inputs(folder: Path, inputs: list[dict[str, Any]]) -> None:
    """Raise UsageError if the run to resume has read other inputs.

    InputError, if its note of them is damaged.
    """
    try:
        before = read_sealed(folder / INPUTS)["inputs"]
    except FileNotFoundError:
        return
    except (ValueError, KeyError) as error:
        raise InputError(
            f"{folder / INPUTS}: damaged ({error}); start again with --overwrite, or delete this "
            "file if the inputs have not changed since the run began"
        ) from None
    if not are_same_contents(before, inputs):
        raise UsageError(
            f"{folder}: contains an unfinished run, and its inputs have changed since; choose "
            "another --output or start again with --overwrite"
        )


def _is_begun(place: OutputPlace) -> bool:
    """Return whether there is intermediate data to resume from, covered by the marker."""
    return place.temporary is not None and place.temporary.exists()


def _state(place: OutputPlace) -> list[tuple[int, int, int] | None]:
    """Return inodes, sizes and times, which change when a file or one beside it is written."""
    states: list[tuple[int, int, int] | None] = []
    for path in place.files:
        with suppress(FileNotFoundError):
            status = path.stat()
            states.append((status.st_ino, status.st_size, status.st_mtime_ns))
            continue
        states.append(None)
    return states
