"""How a job takes its output in hand: what is not its own stays, what is half done is known."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from bert_tf.config.console import Console
from bert_tf.config.errors import UsageError
from bert_tf.config.section import Section
from bert_tf.config.sections import SECTIONS
from bert_tf.data.atomic import replacing_file, write_text_atomically
from pipeline.artifacts import (
    duplicates_path,
    holds_records,
    manifest_path,
    read_manifest,
    rejects_path,
)


def refuse_bad_place(output: str, inputs: list[str]) -> None:
    """Refuses an output that cannot be written, or that would change an input.

    Raises:
        UsageError: `output` is not on a file system of this machine, is or holds an input, or lies
            in a folder that is one; or a name is not UTF-8, which no manifest could hold.
    """
    for path in (output, *inputs):
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(f"{path!r}: this name is not UTF-8; rename it") from None
    if "://" in output:
        raise UsageError(
            f"{output}: outputs are written to this machine's file system; give a local path or "
            "the path under which that storage is mounted here, or copy the output afterwards"
        )
    place = Path(output).resolve()
    for path in inputs:
        source = Path(path).resolve()
        if "://" in path:
            continue
        if place == source or place in source.parents:
            raise UsageError(
                f"--output {output}: is or holds the input {path}, which it would replace; "
                "name another"
            )
        if source in place.parents and not holds_records(source):
            raise UsageError(
                f"--output {output}: lies in the input {path}, whose content it would change; "
                "name another"
            )


def refuse_unfinished(folder: str | Path) -> None:
    """Refuses to read what a job has begun to write and not finished.

    Raises:
        UsageError: the folder has a job's `config.yaml` and no manifest.
    """
    is_marked = _read_marker(marker_path(str(folder), is_directory=True)) is not None
    if is_marked and read_manifest(folder) is None:
        raise UsageError(f"{folder}: is not finished; run the command that makes it again")


@contextmanager
def writing_folder(
    output: str,
    config: Section,
    console: Console,
    *,
    overwrite: bool,
    ignored_keys: tuple[str, ...],
    can_resume: bool,
) -> Iterator[None]:
    """Makes the folder ready for the block to fill; `config.yaml` in it says whose it is.

    Args:
        output: the folder.
        config: what it is made with.
        console: told when an unfinished run goes on.
        overwrite: remove what is there, if this tool made it.
        ignored_keys: config keys that an unfinished run may differ in.
        can_resume: whether the block goes on from what an unfinished run left; if not, that is
            removed.

    Raises:
        UsageError: there is a file, a folder of somebody else, or an unfinished run of another
            config.
    """
    folder = Path(output)
    marker = marker_path(output, is_directory=True)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--output {output}: is a file; name a folder")
    content = [path for path in folder.iterdir() if path != marker] if folder.is_dir() else []
    marked = _read_marker(marker, config.section_name)
    if marked is None and (content or marker.exists()):
        raise UsageError(
            f"{output}: holds files that bert-pipeline did not make; choose an empty folder"
        )
    if content and marked is not None:
        if not overwrite:
            _refuse_other_run(output, marker, marked, config, ignored_keys)
        if overwrite or not can_resume:
            manifest_path(output).unlink(missing_ok=True)  # first: nothing may vouch for the rest
            for path in content:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        else:
            console.say(f"{output}: unfinished run of the same config found; going on")
    folder.mkdir(parents=True, exist_ok=True)
    _write_marker(marker, config)
    yield


@contextmanager
def writing_file(
    output: str, config: Section, *, overwrite: bool, ignored_keys: tuple[str, ...]
) -> Iterator[None]:
    """The block makes the file, and its manifest last; it is not called for a finished file
    without `overwrite`.

    `.FILE.config.yaml` beside the file says that it is being made, and how, until its manifest is
    there; the manifest of an older file is gone from the start. Where the block fails before it
    has replaced that file or what lies beside it, both are as before.

    Args:
        output: the file.
        config: what it is made with.
        overwrite: replace a file that is there, whosever it is.
        ignored_keys: config keys that an unfinished run may differ in.

    Raises:
        UsageError: there is a folder, a file of somebody else, or an unfinished one of another
            config.
    """
    path, marker = Path(output), marker_path(output, is_directory=False)
    if path.is_dir():
        raise UsageError(f"--output {output}: is a folder; name a file")
    marked = _read_marker(marker, config.section_name)
    if path.exists() and not overwrite:
        if marked is None:
            raise UsageError(
                f"{output}: exists but was not made by this command; "
                "choose another --output or replace it with --overwrite"
            )
        _refuse_other_run(output, marker, marked, config, ignored_keys)
    manifest = manifest_path(output)
    before, vouched = _state(path), manifest.read_bytes() if manifest.is_file() else None
    _write_marker(marker, config)
    manifest.unlink(missing_ok=True)
    try:
        yield
    except BaseException:
        is_untouched = _state(path) == before
        if is_untouched and vouched is not None:
            with replacing_file(manifest) as aside:
                aside.write_bytes(vouched)
        if not path.exists() or (is_untouched and marked is None):
            marker.unlink(missing_ok=True)
        raise
    marker.unlink(missing_ok=True)


def marker_path(output: str, *, is_directory: bool) -> Path:
    """The file that says with which config an output is being made."""
    path = Path(output)
    return path / "config.yaml" if is_directory else path.with_name(f".{path.name}.config.yaml")


def _write_marker(marker: Path, config: Section) -> None:
    document = {config.section_name: config.as_dict()}
    write_text_atomically(marker, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def _read_marker(marker: Path, section_name: str = "") -> dict[str, Any] | None:
    """The content of a marker; None where there is none, or a file of somebody else.

    Args:
        marker: the file.
        section_name: of the job's own section, which counts as ours beside `SECTIONS`.
    """
    try:
        document = yaml.safe_load(marker.read_text(encoding="utf-8"))
    except (FileNotFoundError, UnicodeDecodeError, yaml.YAMLError):
        return None
    if not isinstance(document, dict) or len(document) != 1:
        return None
    ((name, values),) = document.items()
    is_known = name == section_name or name in SECTIONS
    return document if is_known and isinstance(values, dict) and "output" in values else None


def _refuse_other_run(
    output: str,
    marker: Path,
    marked: dict[str, Any],
    config: Section,
    ignored_keys: tuple[str, ...],
) -> None:
    before, now = marked.get(config.section_name, {}), config.as_dict()
    if any(before.get(key) != now[key] for key in now if key not in ignored_keys):
        raise UsageError(
            f"{output}: holds an unfinished run of another config (see {marker}); "
            "choose another --output or replace it with --overwrite"
        )


def _state(output: Path) -> list[tuple[int, int, int] | None]:
    """What changes when a file, or one that a manifest tells of beside it, is written."""
    states: list[tuple[int, int, int] | None] = []
    for path in (output, rejects_path(output), duplicates_path(output)):
        try:
            found = path.stat()
        except FileNotFoundError:
            states.append(None)
        else:
            states.append((found.st_ino, found.st_size, found.st_mtime_ns))
    return states
