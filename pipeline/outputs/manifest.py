"""Manifests and fingerprints: origin, content and checksums of an output."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bert_tf.base.checksums import CARD, SUMS, check_sums, file_sha256, read_sums
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import RemotePath, write_text_atomically
from bert_tf.base.json_files import read_sealed, sealed
from bert_tf.config.section import Section, field_type, former_defaults
from pipeline.beam.own_files import DROPPED, DUPLICATES, EXCLUDED, MANIFEST, PAGE, REJECTS, SIDES
from pipeline.beam.stored_path import path_of
from pipeline.beam.workers import installed_versions
from pipeline.outputs.job_log import LOG, OLDER

MANIFEST_VERSION = 1
LOCK = ".bert-pipeline.lock"
SECONDS = ".seconds"
INPUTS = ".inputs.json"
# A job's notes on its folder: manifest, config and inputs while it is being made, seconds so far,
# lock, and logs.
BEFORE_UPDATE = ".before-update.json"  # the manifest of a folder to which files are added
REJECTS_BEFORE_UPDATE = ".before-update.rejects.jsonl"  # and its rejects
JOB_FILES = (
    *("manifest.json", "config.yaml", INPUTS, BEFORE_UPDATE, REJECTS_BEFORE_UPDATE),
    *(SECONDS, LOCK, LOG, LOG + OLDER),
)
# Of a run. They change when it is continued; checkpoints hold their own checksums, and
# metrics.jsonl has the numbers of the events.
WORKING_FOLDERS = ("checkpoints", "failed", "tensorboard", "tracking")
_PACKAGES = (
    "apache-beam", "faiss-cpu", "fastwarc", "keras", "keras-hub", "mwparserfromhell", "numba",
    "numpy", "phonenumbers", "py3langid", "pyarrow", "resiliparse", "sentencex", "tensorflow",
    "tensorflow-text", "trafilatura",
)  # fmt: skip


def _path_of_side(name: str, output: str | Path) -> Path:
    """Return `DIR/NAME` for a folder, `FILE.NAME` beside a file."""
    path = path_of(output)
    return path / name if path.is_dir() else path.with_name(f"{path.name}.{name}")


manifest_path = functools.partial(_path_of_side, MANIFEST)
rejects_path = functools.partial(_path_of_side, REJECTS)
duplicates_path = functools.partial(_path_of_side, DUPLICATES)
dropped_path = functools.partial(_path_of_side, DROPPED)
excluded_path = functools.partial(_path_of_side, EXCLUDED)
report_path = functools.partial(_path_of_side, PAGE)


def side_paths(output: str | Path) -> tuple[Path, ...]:
    """Return the paths of all `SIDES` beside a file, its manifest first."""
    path = path_of(output)
    return tuple(path.with_name(f"{path.name}.{name}") for name in SIDES)


def read_manifest(output: str | Path) -> dict[str, Any] | None:
    """Read the manifest of a finished output; None if there is none.

    Raises:
        InputError: it is damaged, or of a newer version.
    """
    path = manifest_path(output)
    try:
        manifest = read_sealed(path)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(
            f"{path}: damaged manifest ({error}); make the output again with --overwrite"
        ) from None
    if "command" in manifest and manifest.get("manifest_version", 1) != MANIFEST_VERSION:
        raise InputError(f"{path}: is of a newer version of bert-pipeline; upgrade this one")
    return manifest


def write_manifest(output: str | Path, manifest: dict[str, Any]) -> Path:
    """Write the manifest with its checksum, which declares the output finished: call it last."""
    path = manifest_path(output)
    write_text_atomically(path, sealed(manifest, indent=2))
    return path


def describe_files(output: str | Path, known: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return path, bytes and SHA-256 of every file of an output and of its lists of rows.

    Excludes hidden files, `JOB_FILES` and working folders of a run; trusts a model's `SHA256SUMS`.

    Args:
        output: a folder or file.
        known: SHA-256 of files that were hashed while they were written, by path in the folder.
    """
    output = path_of(output)
    if not output.is_dir():
        beside = (output, *side_paths(output)[1:])
        return [_describe(path, path.name, None) for path in beside if path.is_file()]
    hashes = dict(known)
    for folder in (output, output / "best"):
        prefix = folder.relative_to(output)
        hashes.update({str(prefix / name): sha256 for name, sha256 in read_sums(folder).items()})
    names = {str(path.relative_to(output)) for path in output.rglob("*") if path.is_file()}
    if isinstance(output, RemotePath):  # a listing may be late
        names.update(name for name in known if name not in names and (output / name).is_file())
    return [
        _describe(output / name, name, hashes.get(name))
        for name in sorted(filter(is_content, names))
        if Path(name).parts[0] not in WORKING_FOLDERS
    ]


def is_content(name: str) -> bool:
    """Return whether a file of a folder is no note of the job, nor hidden or being written."""
    return name not in JOB_FILES and not any(part.startswith(".") for part in Path(name).parts)


def _describe(path: Path, name: str, sha256: str | None) -> dict[str, Any]:
    size = path.stat().st_size
    return {"path": name, "bytes": size, "sha256": sha256 or file_sha256(path)}


def check_files(output: str | Path, names: Collection[str] = ()) -> None:
    """Compare files of an output with its manifest.

    Passes without a manifest, or with another tool's.

    Args:
        output: a folder or file.
        names: files of a folder, as in the manifest's `outputs`.

    Raises:
        InputError: a file differs.
    """
    output, alternative = path_of(output), ""
    made = (read_manifest(output) or {}).get("outputs", [])
    if output.is_dir():
        sums = [(output / each["path"], each["sha256"]) for each in made if each["path"] in names]
    else:  # the first, under whatever name it and its manifest go by now
        sums = [(output, each["sha256"]) for each in made[:1]]
        alternative = f", or delete {manifest_path(output)} if the change is intended"
    for path, sha256 in sums:
        if path.is_file() and file_sha256(path) != sha256:
            raise InputError(
                f"{path}: has changed since it was written (its SHA-256 differs from the "
                f"manifest's); make it again{alternative}"
            )


def fingerprint(
    path: str | Path, is_checked: Callable[[str], bool] | None = None
) -> dict[str, Any]:
    """Return path, bytes and SHA-256 of a file or folder.

    A folder's hash is that of the names and hashes of its files. Excludes `JOB_FILES`, which hold
    times and paths, `SHA256SUMS`, and the card beside it, which people edit. Pretraining records,
    which may be terabytes, are only known by their manifest. A file on other storage (`gs://…`) has
    the fingerprint of a local copy.

    Args:
        path: a file or folder.
        is_checked: which files, by path in the folder, must match `SHA256SUMS`.

    Raises:
        UsageError: there is no such file or folder.
        InputError: a file does not match.
    """
    if "://" in str(path) and not path_of(path).is_dir():
        return _fingerprint_of_stored(str(path))
    path = path_of(path)
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder; check the path")
    if not path.is_dir():
        return {"path": str(path), "bytes": path.stat().st_size, "sha256": file_sha256(path)}
    files = sorted(file for file in path.rglob("*") if file.is_file())
    others = {*JOB_FILES, SUMS, *((CARD,) if (path / SUMS).is_file() else ())}
    files = [file for file in files if file.parent != path or file.name not in others]
    size = sum(file.stat().st_size for file in files)
    if holds_records(path):
        return {"path": str(path), "bytes": size, "sha256": file_sha256(path / "manifest.json")}
    hashes = {str(file.relative_to(path)): file_sha256(file) for file in files}
    if is_checked is not None:
        check_sums(path, is_checked, known=hashes)
    listed = "".join(f"{name}\0{sha256}\n" for name, sha256 in hashes.items())
    return {"path": str(path), "bytes": size, "sha256": hashlib.sha256(listed.encode()).hexdigest()}


def holds_records(folder: Path) -> bool:
    """Return whether a folder has pretraining records of this tool."""
    with suppress(InputError):
        return (read_manifest(folder) or {}).get("command") == "preprocess"
    return False


def _fingerprint_of_stored(path: str) -> dict[str, Any]:
    """Return the fingerprint of a file on other storage."""
    from pipeline.beam.storage import open_stored  # Beam: jobs without it need not load it

    with open_stored(path) as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        return {"path": path, "bytes": stream.seek(0, os.SEEK_END), "sha256": sha256}


def package_versions() -> dict[str, str]:
    """Return versions of all that can change results.

    These are this tool, packages, Python, and its Unicode tables.
    """
    return installed_versions(("bert-pipeline", *_PACKAGES))


# The paths that a config key names, by that key. Brackets say which part:
# `phases[0].data`, or `input[NAME]` where names of inputs become those of outputs.
Inputs = Mapping[str, Sequence[str]]
# Which files of a folder its `SHA256SUMS` has to vouch for, by the key of `Inputs`.
CheckedInputs = Mapping[str, Callable[[str], bool]]


def input_fingerprints(inputs: Inputs, checked: CheckedInputs) -> list[dict[str, Any]]:
    """Return the `fingerprint` of every input, with the key that names it.

    Args:
        inputs: paths by key.
        checked: which files of a folder must match its `SHA256SUMS`, by key.
    """
    return [
        {"key": key, **fingerprint(path, checked.get(key))}
        for key, paths in inputs.items()
        for path in paths
    ]


def changed_since_made(fingerprints: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which input files are not what the manifest beside them says; a line each."""
    lines = []
    for each in fingerprints:
        path = Path(str(each["path"]))
        if "://" in str(each["path"]) or not path.is_file():
            continue
        with suppress(InputError):  # a damaged manifest says nothing about the file
            made = (read_manifest(path) or {}).get("outputs", [])
            if any(it["path"] == path.name and it["sha256"] != each["sha256"] for it in made):
                lines.append(
                    f"{path}: has changed since bert-pipeline made it, as "
                    f"{manifest_path(path).name} shows; it is used as it is now"
                )
    return lines


def input_states(inputs: Inputs) -> dict[str, list[tuple[str, int, int]]]:
    """Return size and time of change of the files of every local input.

    They are cheap to compare: only where they differ, the content is hashed again. Of records only
    the manifest counts.
    """
    states: dict[str, list[tuple[str, int, int]]] = {}
    for path in (path for paths in inputs.values() for path in paths if "://" not in path):
        found = Path(path)
        is_tree = found.is_dir() and not holds_records(found)
        files = sorted(found.rglob("*")) if is_tree else [manifest_path(path), found]
        states[path] = []
        for file in files:
            if file.is_file():
                state = file.stat()
                states[path].append((str(file), state.st_size, state.st_mtime_ns))
    return states


def changed_inputs(
    inputs: Inputs, states: Mapping[str, Any], fingerprints: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return paths whose content has changed, or that are gone, since they were taken down.

    Args:
        inputs: paths by key.
        states: of `input_states`, when the job began.
        fingerprints: of `input_fingerprints`, when the job began.
    """
    now = input_states(inputs)
    known = {item["path"]: item["sha256"] for item in fingerprints}

    def is_changed(path: str) -> bool:
        if now[path] == states[path]:
            return False
        try:
            return bool(fingerprint(path)["sha256"] != known[str(Path(path))])
        except (OSError, UsageError):  # it is gone
            return True

    return [path for path in states if is_changed(path)]


def kept_keys(config: Mapping[str, Any], ignored_keys: tuple[str, ...]) -> dict[str, Any]:
    """Return values without ignored keys; `list.key` leaves one out of every item of a list."""
    kept = {key: value for key, value in config.items() if key not in ignored_keys}
    for ignored in ignored_keys:
        name, dot, inner = ignored.partition(".")
        if dot and isinstance(kept.get(name), list):
            kept[name] = [
                {key: value for key, value in item.items() if key != inner}
                for item in kept[name]
                if isinstance(item, Mapping)  # a marker edited by hand may hold anything
            ]
    return kept


def with_defaults(section: type[Section], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved config with the keys that an earlier release lacked, as their defaults."""
    complete = {**section().as_dict(), **former_defaults(section), **config}
    for field in dataclasses.fields(section):
        kind, is_list, *_ = field_type(section, field.name)
        items = complete[field.name]
        if is_list and issubclass(kind, Section) and isinstance(items, list):
            complete[field.name] = [
                with_defaults(kind, item) if isinstance(item, Mapping) else item for item in items
            ]
    return complete


def config_key(key: str) -> str:
    """Return the config key in a key of `Inputs`: `phases.data` for `phases[0].data`."""
    return re.sub(r"\[.*\]", "", key)


def are_same_contents(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> bool:
    """Return whether inputs have the same content by key, whatever their names and order."""
    # Manifests of release 0.1 do not say by which key.
    keys = ("key", "sha256") if all("key" in item for item in before) else ("sha256",)
    return sorted([item[key] for key in keys] for item in before) == sorted(
        [item[key] for key in keys] for item in now
    )


def check_made_by(output: str, finished: Mapping[str, Any], command: str) -> None:
    """Raise UsageError if another command made a finished output."""
    if finished.get("command") != command:
        raise UsageError(
            f"{output}: made by bert-pipeline {finished.get('command')}; "
            "choose another --output or replace it with --overwrite"
        )


def check_no_differences(output: str, differences: Sequence[str]) -> None:
    """Raise UsageError if there are differences between an output's config and the command's."""
    if differences:
        raise UsageError(
            f"{output}: made with another config ({'; '.join(differences)}); "
            "choose another --output or replace it with --overwrite"
        )


def already_finished(output: str) -> str:
    """Say that there is nothing to do."""
    return f"{output} is finished already and its config is the same; nothing to do"


def recorded_input(artifact: Path, path: str) -> Path | None:
    """Find a manifest's input from the working directory or above the artifact, or None."""
    if "://" in path:
        return None
    places = (Path(path), *(folder / path for folder in artifact.absolute().parents))
    return next((place for place in places if place.exists()), None)
