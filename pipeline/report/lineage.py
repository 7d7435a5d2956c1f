"""The inputs of an artifact, back to files that no job made, as lines and JSON.

Each manifest names the inputs of its job, with their SHA-256. An input that is an artifact itself
has a manifest, too, so the manifests together are a graph from the artifact back to its sources.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bert_tf.base.wording import shown_size
from pipeline.outputs.inputs import fingerprint, recorded_input
from pipeline.outputs.manifest import manifest_path, read_manifest
from pipeline.report.artifact import LARGEST_BYTES_HASHED, meaning_of

SAME = "same"
NOT_COMPARED = "not compared"
CHANGED = "changed"
MISSING = "missing"
# Folders above an input that are searched for the manifest of its artifact: `run/best` and
# `model/1` are parts of folders with manifests.
_FOLDERS_ABOVE = 3
# SHA-256 of files that were read, by their paths: a corpus is an input of several jobs.
_Hashes = dict[Path, str]
_STATES = {
    SAME: "",
    NOT_COMPARED: ", content not compared",
    CHANGED: ", CHANGED since it was read",
    MISSING: ", missing",
}
_SHA256_SHOWN = 12
_SHOWN = ("key", "path", "bytes", "sha256", "state")  # of a source


@dataclasses.dataclass(frozen=True)
class Source:
    """An input of a job.

    Attributes:
        key: of the config that named it; "" in manifests of release 0.1.
        path: as the manifest has it.
        bytes: size when it was read.
        sha256: of its content then; for a folder, of its manifest.
        place: where it is now; None if it is missing.
        state: SAME, NOT_COMPARED, CHANGED or MISSING.
        made: the job that made this content; None if no job is known.
    """

    key: str
    path: str
    bytes: int
    sha256: str
    place: Path | None
    state: str
    made: Made | None


@dataclasses.dataclass(frozen=True)
class Made:
    """An artifact with its inputs.

    Attributes:
        path: of the artifact.
        manifest: of the job that made it.
        sources: its inputs.
    """

    path: Path
    manifest: dict[str, Any]
    sources: tuple[Source, ...]


def trace(path: Path, manifest: dict[str, Any], hashes: _Hashes | None = None) -> Made:
    """Follow the inputs of an artifact back to files that no job made.

    Relative paths are looked up from the working directory, then from the folders above the
    artifact. Content is compared up to `LARGEST_BYTES_HASHED` for each input.

    Args:
        path: of the artifact.
        manifest: of the artifact.
        hashes: SHA-256 of files that were already read, by path, so that each is read once.

    Returns:
        The artifact, with all that it was made from.

    Raises:
        InputError: a manifest is damaged.
    """
    hashes = {} if hashes is None else hashes
    sources = tuple(_source(path, item, hashes) for item in manifest.get("inputs", []))
    return Made(path, manifest, sources)


def _source(artifact: Path, item: dict[str, Any], hashes: _Hashes) -> Source:
    """Find an input and the job that made it; changed content was made by no known job."""
    path = item["path"]
    artifact_path = recorded_input(artifact, path)
    state = MISSING if artifact_path is None else _state(artifact_path, item, hashes)
    made = None
    if artifact_path is not None and state != CHANGED:
        maker = _maker(artifact_path)
        made = None if maker is None else trace(*maker, hashes)
    return Source(
        item.get("key", ""), path, item["bytes"], item["sha256"], artifact_path, state, made
    )


def _state(path: Path, item: dict[str, Any], hashes: _Hashes) -> str:
    """Compare an input with the file that the job read."""
    if item["bytes"] > LARGEST_BYTES_HASHED:
        return NOT_COMPARED
    path = path.resolve()
    if path not in hashes:
        hashes[path] = fingerprint(path)["sha256"]
    return SAME if hashes[path] == item["sha256"] else CHANGED


def _maker(path: Path) -> tuple[Path, dict[str, Any]] | None:
    """Return the artifact that a path is, or that it is a part of, with its manifest.

    A folder counts only if its manifest lists the path: a user's files may be beside outputs.
    """
    manifest = read_manifest(path)
    if manifest is not None:
        return path, manifest
    for folder in path.absolute().parents[:_FOLDERS_ABOVE]:
        if not manifest_path(folder).is_file():
            continue
        manifest = read_manifest(folder)
        if manifest is None:
            continue
        part = path.absolute().relative_to(folder).as_posix()
        outputs = (output["path"] for output in manifest.get("outputs", []))
        is_listed = any(name == part or name.startswith(part + "/") for name in outputs)
        return (folder, manifest) if is_listed else None
    return None


def finished(made: Made) -> datetime:
    """Return the end time of a job; for manifests without it, their modification time."""
    noted = made.manifest.get("finished")
    if noted is not None:
        return datetime.fromisoformat(noted)
    return datetime.fromtimestamp(manifest_path(made.path).stat().st_mtime, UTC)


def lineage_lines(made: Made) -> list[str]:
    """Write the lineage as an indented list; the inputs of an artifact are shown once."""
    lines = [f"{made.path}: {_how_made(made)}"]
    listed: set[Path] = set()

    def add(step: Made, indent: str) -> None:
        lines.extend(
            f"{indent}rule: {rule['name']}={rule.get('minimum', rule.get('maximum')):g}: "
            f"{rule['dropped']:,} {rule['of']} dropped"
            for rule in step.manifest.get("rules", [])
        )
        if step.sources and step.path.resolve() in listed:
            lines.append(f"{indent}(its inputs are above)")
            return
        listed.add(step.path.resolve())
        for source in step.sources:
            origin = "" if source.made is None else f"; {_how_made(source.made)}"
            lines.append(
                f"{indent}{source.key or 'input'}: {source.path} ({shown_size(source.bytes)}, "
                f"SHA-256 {source.sha256[:_SHA256_SHOWN]}{_STATES[source.state]}){origin}"
            )
            if source.made is not None:
                add(source.made, f"{indent}  ")

    add(made, "  ")
    return lines


def _how_made(made: Made) -> str:
    command = made.manifest.get("command", "")
    version = made.manifest.get("versions", {}).get("bert-pipeline", "")
    day = finished(made).date()
    return f"{meaning_of(command)}, made by bert-pipeline {command} {version} on {day}"


def lineage_json(made: Made) -> dict[str, Any]:
    """Return the lineage as nested JSON objects."""
    return {
        "path": str(made.path),
        "command": made.manifest.get("command"),
        "finished": finished(made).isoformat(),
        "config": made.manifest.get("config", {}),
        "versions": made.manifest.get("versions", {}),
        "rules": [
            {key: value for key, value in rule.items() if key != "samples"}
            for rule in made.manifest.get("rules", [])
        ],
        "inputs": [
            {
                **{name: getattr(source, name) for name in _SHOWN},
                "made": None if source.made is None else lineage_json(source.made),
            }
            for source in made.sources
        ],
    }
