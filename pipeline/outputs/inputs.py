"""Inputs of jobs: their fingerprints, which identify an output, and their changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bert_tf.base.checksums import CARD, SUMS, check_sums, file_sha256
from bert_tf.base.errors import InputError, UsageError
from pipeline.beam.stored_path import path_of
from pipeline.outputs.manifest import JOB_FILES, manifest_path, read_manifest

# The paths that a config key names, by that key. Brackets say which part:
# `phases[0].data`, or `input[NAME]` where names of inputs become those of outputs.
Inputs = Mapping[str, Sequence[str]]
# Which files of a folder its `SHA256SUMS` has to vouch for, by the key of `Inputs`.
CheckedInputs = Mapping[str, Callable[[str], bool]]


class JobInputs:
    """The inputs of a job, as they are when it begins.

    Attributes:
        fingerprints: of every input, with the key that names it.

    Args:
        paths: by config key.
        checked: which files of a folder must match its `SHA256SUMS`, by key.

    Raises:
        UsageError: a path does not exist.
        InputError: a file does not match its SHA-256.
    """

    def __init__(self, paths: Inputs, checked: CheckedInputs):
        self._paths = paths
        # Before the content is read, so that a change meanwhile shows.
        self._states = _input_states(paths)
        self.fingerprints = [
            {"key": key, **fingerprint(path, checked.get(key))}
            for key, listed in paths.items()
            for path in listed
        ]

    def changed_since_made(self) -> list[str]:
        """Return a line for each input file that the manifest beside it does not describe."""
        lines = []
        for each in self.fingerprints:
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

    def changed(self) -> list[str]:
        """Return paths whose content has changed, or that are gone, since the job began."""
        now = _input_states(self._paths)
        known = {item["path"]: item["sha256"] for item in self.fingerprints}

        def is_changed(path: str) -> bool:
            if now[path] == self._states[path]:
                return False
            try:
                return bool(fingerprint(path)["sha256"] != known[str(Path(path))])
            except (OSError, UsageError):  # it is gone
                return True

        return [path for path in self._states if is_changed(path)]


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


def _input_states(inputs: Inputs) -> dict[str, list[tuple[str, int, int]]]:
    """Return size and time of change of the files of every local input.

    They are cheap to compare: only where they differ, the content is hashed again. Of records only
    the manifest counts.
    """
    states: dict[str, list[tuple[str, int, int]]] = {}
    for path in (path for paths in inputs.values() for path in paths if "://" not in path):
        place = Path(path)
        is_tree = place.is_dir() and not holds_records(place)
        files = sorted(place.rglob("*")) if is_tree else [manifest_path(path), place]
        states[path] = []
        for file in files:
            if file.is_file():
                state = file.stat()
                states[path].append((str(file), state.st_size, state.st_mtime_ns))
    return states


def are_same_contents(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> bool:
    """Return whether inputs have the same content by key, ignoring names and order."""
    # Manifests of release 0.1 do not say by which key.
    keys = ("key", "sha256") if all("key" in item for item in before) else ("sha256",)
    return sorted([item[key] for key in keys] for item in before) == sorted(
        [item[key] for key in keys] for item in now
    )


def recorded_input(artifact: Path, path: str) -> Path | None:
    """Find a manifest's input from the working directory or above the artifact, or None."""
    if "://" in path:
        return None
    places = (Path(path), *(folder / path for folder in artifact.absolute().parents))
    return next((place for place in places if place.exists()), None)
