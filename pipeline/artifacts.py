"""Manifests and fingerprints: how an output says what it is, what made it and that it is whole."""

from __future__ import annotations

import hashlib
import json
import platform
import unicodedata
from importlib import metadata
from pathlib import Path
from typing import Any

from bert_tf.config.errors import InputError, UsageError
from bert_tf.data.atomic import write_text_atomically
from bert_tf.data.checksums import SUMS, file_sha256

MANIFEST_VERSION = 1
_CHUNK_BYTES = 1 << 20
LOCK = ".bert-pipeline.lock"
# What a job writes about its folder: its manifest, how it is being made, from what, and its lock.
JOB_FILES = ("manifest.json", "config.yaml", ".inputs.json", LOCK)
_PACKAGES = (
    "apache-beam", "keras", "keras-hub", "mwparserfromhell", "numba", "numpy", "pyarrow",
    "sentencex", "tensorflow", "tensorflow-text",
)  # fmt: skip


def manifest_path(output: str | Path) -> Path:
    """`DIR/manifest.json` for a folder, `FILE.manifest.json` beside a file."""
    output = Path(output)
    if output.is_dir():
        return output / "manifest.json"
    return output.with_name(output.name + ".manifest.json")


def rejects_path(output: str | Path) -> Path:
    """`DIR/rejects.jsonl` for a folder, `FILE.rejects.jsonl` beside a file."""
    output = Path(output)
    if output.is_dir():
        return output / "rejects.jsonl"
    return output.with_name(output.name + ".rejects.jsonl")


def duplicates_path(output: str | Path) -> Path:
    """`DIR/duplicates.jsonl` for a folder, `FILE.duplicates.jsonl` beside a file."""
    output = Path(output)
    if output.is_dir():
        return output / "duplicates.jsonl"
    return output.with_name(output.name + ".duplicates.jsonl")


def side_paths(output: str | Path) -> tuple[Path, ...]:
    """What a job may write beside a file: its manifest, rejects and duplicates."""
    path = Path(output)
    return tuple(
        path.with_name(f"{path.name}.{name}")
        for name in ("manifest.json", "rejects.jsonl", "duplicates.jsonl")
    )


def read_manifest(output: str | Path) -> dict[str, Any] | None:
    """The manifest of a finished output, None where there is none.

    Raises:
        InputError: the manifest is damaged.
    """
    path = manifest_path(output)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        manifest = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"{path}: damaged manifest ({error}); make the output again with --overwrite"
        ) from None
    if not isinstance(manifest, dict):
        raise InputError(f"{path}: damaged manifest; make the output again with --overwrite")
    return manifest


def write_manifest(output: str | Path, manifest: dict[str, Any]) -> Path:
    """Writes the manifest, which declares the output finished: call it last."""
    path = manifest_path(output)
    write_text_atomically(path, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    return path


def fingerprint(path: str | Path) -> dict[str, Any]:
    """Name, size in bytes and SHA-256 of a file; a folder's is that of its files' names and hashes.

    Left out are the `JOB_FILES` of the job that made a folder, which hold times and paths, and
    `SHA256SUMS`, which repeats what is there. Pretraining records, which may be terabytes, are
    known by their manifest alone. A file on other storage (`gs://…`) is read from there, so that
    its fingerprint is that of a local copy.

    Raises:
        UsageError: there is nothing at `path`.
    """
    if "://" in str(path):
        return _fingerprint_of_stored(str(path))
    path = Path(path)
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder; check the path")
    if not path.is_dir():
        return {"path": str(path), "bytes": path.stat().st_size, "sha256": file_sha256(path)}
    files = sorted(file for file in path.rglob("*") if file.is_file())
    files = [file for file in files if file.parent != path or file.name not in (*JOB_FILES, SUMS)]
    size = sum(file.stat().st_size for file in files)
    if holds_records(path):
        return {"path": str(path), "bytes": size, "sha256": file_sha256(path / "manifest.json")}
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(path)}\0{file_sha256(file)}\n".encode())
    return {"path": str(path), "bytes": size, "sha256": digest.hexdigest()}


def holds_records(folder: Path) -> bool:
    """Whether a path is a folder that `preprocess` has finished."""
    try:
        manifest = read_manifest(folder)
    except InputError:
        return False
    return manifest is not None and manifest.get("command") == "preprocess"


def _fingerprint_of_stored(path: str) -> dict[str, Any]:
    from pipeline.storage import open_stored  # Beam: jobs without it need not load it

    digest = hashlib.sha256()
    size = 0
    with open_stored(path) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return {"path": path, "bytes": size, "sha256": digest.hexdigest()}


def package_versions() -> dict[str, str]:
    """Versions of this tool and of what can change its results: packages, Python, and Python's
    tables of Unicode, which cleaning, sentences and normalisation follow."""
    versions = {}
    for name in ("bert-pipeline", *_PACKAGES):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    versions["python"] = platform.python_version()
    versions["unicode"] = unicodedata.unidata_version
    return versions
