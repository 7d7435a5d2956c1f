"""How a job prepares its output: files of others are kept, unfinished work is recognized."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import (
    RemotePath,
    remove,
    remove_leftovers,
    replacing_file,
    write_text_atomically,
)
from bert_tf.base.json_files import read_sealed, sealed
from bert_tf.config.plain_yaml import yaml_text
from bert_tf.config.section import Section, plain_values
from bert_tf.engines.registry import exported_folder
from pipeline.outputs.identity import (
    are_same_contents,
    different_keys,
    is_extended,
    kept_keys,
    with_defaults,
)
from pipeline.outputs.manifest import INPUTS, JOB_FILES, manifest_path, read_manifest, rejects_path
from pipeline.outputs.place import (
    OutputPlace,
    check_foreign_files,
    marker_path,
    read_marker,
)


def check_finished(folder: str | Path) -> None:
    """Refuses to read what a job has begun to write and not finished.

    Raises:
        UsageError: the folder has a job's `config.yaml` and no manifest.
    """
    is_marked = read_marker(marker_path(str(folder), is_directory=True)) is not None
    if is_marked and read_manifest(folder) is None:
        raise UsageError(f"{folder}: is not finished; run the command that makes it again")


def exported_model(path: str) -> str:
    """The folder that `score` and `evaluate` read of an exported model: for one that is laid out
    for TensorFlow Serving that of its newest version, otherwise `path`.

    Raises:
        UsageError: what is laid out so is not finished.
    """
    folder = exported_folder(path)
    if folder == Path(path):
        return path
    check_finished(path)
    return str(folder)


def check_is_ours(place: OutputPlace, section_name: str, *, overwrite: bool) -> None:
    """Checks that what stands where an output is to be written is there to be replaced.

    Args:
        place: of an output that is not finished.
        section_name: of the config that it is made with.
        overwrite: whether a file may be replaced, whosever it is; a folder never.

    Raises:
        UsageError: it is of somebody else.
    """
    path, marker = place.path, place.marker
    if read_marker(marker, section_name) is not None:
        return
    if place.is_directory and (_content(path) or marker.exists()):
        raise UsageError(
            f"{path}: holds files that bert-pipeline did not make; choose an empty folder"
        )
    if not place.is_directory and path.exists() and not overwrite:
        raise UsageError(
            f"{path}: exists but was not made by this command; "
            "choose another --output or replace it with --overwrite"
        )


@contextmanager
def writing_folder(
    place: OutputPlace,
    config: Section,
    inputs: list[dict[str, Any]],
    console: Console,
    *,
    overwrite: bool,
    ignored_keys: tuple[str, ...],
    can_resume: bool,
    extendable_key: str | None,
) -> Iterator[None]:
    """Makes the folder ready for the block to fill; `config.yaml` in it shows whose it is.

    A block that fails before it has written anything leaves the folder as empty as it was. Where it
    has listed the rows that it refused and nothing else, any config may follow.

    Args:
        place: of the folder.
        config: what it is made with.
        inputs: fingerprints of what it is made from.
        console: informed when an unfinished run is resumed.
        overwrite: remove what is there, if this tool made it.
        ignored_keys: config keys that an unfinished run may differ in.
        can_resume: whether the block resumes from what an unfinished run left; if not, that is
            removed.
        extendable_key: config key that an unfinished run may have a smaller value of.

    Raises:
        UsageError: there is a folder of somebody else, or an unfinished run of another config or
            from other inputs.
    """
    folder, marker = place.path, place.marker
    remove_leftovers(folder, JOB_FILES)  # of a run that ended before its marker was there
    content = _content(folder)
    marked = read_marker(marker, config.section_name)
    check_is_ours(place, config.section_name, overwrite=overwrite)
    if content == [rejects_path(folder)]:  # rows were refused before the work with them began
        remove(content.pop())
    if content and not overwrite:
        _check_same_run(place, marked, config, ignored_keys, extendable_key)
    if content and (overwrite or not can_resume):
        _check_removable(content)
        manifest_path(folder).unlink(missing_ok=True)  # first: nothing may vouch for the rest
        for path in content:
            remove(path)
    elif content:
        _check_same_inputs(folder, inputs)
        if is_extended(_saved_values(marked, config), config.as_dict(), extendable_key):
            console.info(f"{folder}: run of fewer {extendable_key} found; extending it")
        else:
            console.info(f"{folder}: unfinished run of the same config found; resuming it")
        for path in (folder, *_folders_in(folder)):
            remove_leftovers(path)
    folder.mkdir(parents=True, exist_ok=True)
    write_text_atomically(folder / INPUTS, sealed({"inputs": inputs}))
    _write_marker(marker, config)
    try:
        yield
    except BaseException:
        if not _content(folder):
            for path in (marker, folder / INPUTS, place.seconds):
                path.unlink(missing_ok=True)
        raise
    (folder / INPUTS).unlink(missing_ok=True)


@contextmanager
def writing_file(
    place: OutputPlace, config: Section, *, overwrite: bool, ignored_keys: tuple[str, ...]
) -> Iterator[None]:
    """The block makes the file, and its manifest last; it is not called for a finished file
    without `overwrite`.

    `.FILE.config.yaml` beside the file shows that it is being made, and how, until its manifest is
    there; the manifest of an older file is gone from the start. Where the block fails before it
    has replaced that file or what lies beside it, both are as before.

    Args:
        place: of the file.
        config: what it is made with.
        overwrite: replace a file that is there, whosever it is.
        ignored_keys: config keys that an unfinished run may differ in.

    Raises:
        UsageError: there is a file of somebody else, also beside it, or an unfinished one of
            another config.
    """
    path, marker = place.path, place.marker
    marked = read_marker(marker, config.section_name)
    check_is_ours(place, config.section_name, overwrite=overwrite)
    if path.exists() and not overwrite:
        _check_same_run(place, marked, config, ignored_keys)
    check_foreign_files(place, is_marked=marked is not None, overwrite=overwrite)
    remove_leftovers(path.parent, [file.name for file in (*place.files, marker, place.seconds)])
    manifest = manifest_path(path)
    vouched = manifest.read_bytes() if manifest.is_file() else None
    _write_marker(marker, config)
    manifest.unlink(missing_ok=True)
    before = _state(place)
    try:
        yield
    except BaseException:
        is_untouched = _state(place) == before
        if is_untouched and vouched is not None:
            with replacing_file(manifest) as aside:
                aside.write_bytes(vouched)
        if not _is_there(place) or (is_untouched and marked is None and not _is_begun(place)):
            marker.unlink(missing_ok=True)
            place.seconds.unlink(missing_ok=True)
        raise
    marker.unlink(missing_ok=True)


def remove_marks(place: OutputPlace, section_name: str) -> None:
    """Removes what a job that was killed after it wrote its manifest did not remove.

    Args:
        place: of a finished output.
        section_name: of the job's config.
    """
    if place.is_directory:
        marks = [place.path / INPUTS]
    elif read_marker(place.marker, section_name) is None:
        return
    else:
        marks = [place.marker]
    for path in (place.temporary, *marks):
        if path is not None and path.exists():
            remove(path)


def _content(folder: Path) -> list[Path]:
    """What is in a folder, without what the job itself writes about it before it is finished."""
    if not folder.is_dir():
        return []
    return [
        path
        for path in folder.iterdir()
        if path.name not in JOB_FILES or path == manifest_path(folder)
    ]


def _folders_in(folder: Path) -> Iterator[Path]:
    """All folders inside, but for those that a link leads to."""
    if isinstance(folder, RemotePath):
        yield from {path.parent for path in folder.rglob("*")} - {folder}
        return
    for place, names, _ in os.walk(folder):
        inside = (Path(place, name) for name in names)
        yield from (path for path in inside if not path.is_symlink())


def _check_removable(content: list[Path]) -> None:
    """Looks before anything is removed, so that all of it is or nothing."""
    if any(isinstance(path, RemotePath) for path in content):
        return
    folders = [path for path in content if path.is_dir() and not path.is_symlink()]
    for folder in (*folders, *(inner for each in folders for inner in _folders_in(each))):
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise UsageError(
                f"{folder}: cannot be removed, its permissions do not allow it; nothing was "
                "removed; change them or choose another --output"
            )


def _write_marker(marker: Path, config: Section) -> None:
    document = {config.section_name: config.as_dict()}
    write_text_atomically(marker, yaml_text(document))


def _saved_values(marked: dict[str, Any] | None, config: Section) -> dict[str, Any]:
    """What a marker has of the config's section, as plain values; {} for another section's."""
    return plain_values(type(config), (marked or {}).get(config.section_name, {}))


def _check_same_run(
    place: OutputPlace,
    marked: dict[str, Any] | None,
    config: Section,
    ignored_keys: tuple[str, ...],
    extendable_key: str | None = None,
) -> None:
    before = kept_keys(with_defaults(type(config), _saved_values(marked, config)), ignored_keys)
    now = kept_keys(config.as_dict(), ignored_keys)
    if different_keys(before, now, extendable_key):
        raise UsageError(
            f"{place.output}: holds an unfinished run of another config (see {place.marker}); "
            "choose another --output or replace it with --overwrite"
        )


def _check_same_inputs(folder: Path, inputs: list[dict[str, Any]]) -> None:
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
            f"{folder}: holds an unfinished run, and the content of its inputs has changed since; "
            "choose another --output or start again with --overwrite"
        )


def _is_there(place: OutputPlace) -> bool:
    return any(path.exists() for path in place.files) or _is_begun(place)


def _is_begun(place: OutputPlace) -> bool:
    """Whether there is intermediate data to resume from, for which the marker vouches."""
    return place.temporary is not None and place.temporary.exists()


def _state(place: OutputPlace) -> list[tuple[int, int, int] | None]:
    """What changes when a file, or one beside it, is written."""
    states: list[tuple[int, int, int] | None] = []
    for path in place.files:
        with suppress(FileNotFoundError):
            found = path.stat()
            states.append((found.st_ino, found.st_size, found.st_mtime_ns))
            continue
        states.append(None)
    return states


def recorded_input(artifact: Path, path: str) -> Path | None:
    """Where an input is that a manifest names.

    It is looked for from the working directory and from every folder above the artifact.

    Args:
        artifact: whose manifest it is.
        path: as recorded.

    Returns:
        None where it is not there, or on storage that is not a folder here.
    """
    if "://" in path:
        return None
    places = (Path(path), *(folder / path for folder in artifact.absolute().parents))
    return next((place for place in places if place.exists()), None)
