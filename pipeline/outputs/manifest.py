"""Manifests: origin, content and checksums of an output, and the names of the files beside it."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bert_tf.base.checksums import file_sha256, read_sums
from bert_tf.base.errors import InputError
from bert_tf.base.files import RemotePath
from bert_tf.base.json_files import read_sealed, write_sealed
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
# Folders of a run. They change when it is continued; checkpoints hold their own checksums, and
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


def write_manifest(output: Path, manifest: dict[str, Any]) -> Path:
    """Write the manifest with its checksum, which declares the output finished: call it last."""
    path = manifest_path(output)
    write_sealed(path, manifest, indent=2)
    return path


def describe_files(output: Path, known: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return path, bytes and SHA-256 of every file of an output and of its lists of rows.

    Excludes hidden files, `JOB_FILES` and working folders of a run; trusts a model's `SHA256SUMS`.

    Args:
        output: a folder or file.
        known: SHA-256 of files that were hashed while they were written, by path in the folder.
    """
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
    output = path_of(output)
    alternative = ""
    made = (read_manifest(output) or {}).get("outputs", [])
    if output.is_dir():
        sums = [(output / each["path"], each["sha256"]) for each in made if each["path"] in names]
    else:  # the first; it and its manifest may have been renamed
        sums = [(output, each["sha256"]) for each in made[:1]]
        alternative = f", or delete {manifest_path(output)} if the change is intended"
    for path, sha256 in sums:
        if path.is_file() and file_sha256(path) != sha256:
            raise InputError(
                f"{path}: has changed since it was written (its SHA-256 differs from the "
                f"manifest's); make it again{alternative}"
            )


def package_versions() -> dict[str, str]:
    """Return versions of all that can change results.

    These are this tool, packages, Python, and its Unicode tables.
    """
    return installed_versions(("bert-pipeline", *_PACKAGES))


def already_finished(output: str) -> str:
    """Say that there is nothing to do."""
    return f"{output} is finished already and its config is the same; nothing to do"
