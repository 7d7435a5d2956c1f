"""What `bert-pipeline inspect` prints: the manifest in words, then samples of the content."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.config.errors import InputError, UsageError
from bert_tf.data.text_files import open_text
from bert_tf.training.curve import loss_curve_lines
from pipeline.artifacts import manifest_path, read_manifest
from pipeline.report.record_lines import record_lines
from pipeline.report.records import summarise_records

_MEANINGS = {
    "vocab": "WordPiece vocabulary",
    "preprocess": "pretraining TFRecords",
    "train": "pretraining run",
    "finetune": "fine-tuning run",
    "evaluate": "evaluation",
    "export": "exported model",
    "score": "scored rows",
    "import-weights": "model directory",
}


def require_manifest(path: str) -> dict[str, Any]:
    """The manifest of an artifact.

    Raises:
        UsageError: there is nothing at `path`, or nothing that this tool made.
        InputError: the output is not finished.
    """
    if not Path(path).exists():
        raise UsageError(f"{path}: does not exist")
    manifest = read_manifest(path)
    if manifest is not None:
        return manifest
    if (Path(path) / "config.yaml").is_file():
        raise InputError(
            f"{path}: unfinished, it has no manifest yet; run the command in {path}/config.yaml "
            "again to go on"
        )
    raise UsageError(
        f"{path}: not made by bert-pipeline (looked for {manifest_path(path)}); "
        "give a vocabulary file, a data, run or model folder, or a scored file"
    )


def describe_artifact(path: str, *, samples: int) -> list[str]:
    """Lines that tell what an artifact is, its counts and metrics, and show some of it.

    Args:
        path: file or folder with a manifest.
        samples: examples, rows or pieces to show.
    """
    manifest = require_manifest(path)
    lines = [headline(path, manifest)]
    lines += _mapping_lines("config", manifest.get("config", {}))
    lines += [
        f"input: {item['path']}  {item['bytes']:,} bytes  sha256 {item['sha256'][:12]}"
        for item in manifest.get("inputs", [])
    ]
    for key in ("counts", "metrics"):
        lines += _mapping_lines(key, manifest.get(key, {}))
    lines.append(
        f"made in {manifest['timings']['total']:.1f} s with "
        + ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    )
    if manifest.get("command") == "preprocess":
        lines += record_lines(summarise_records(path, samples=samples))
    else:
        lines += content_lines(manifest, Path(path), samples=samples)
    if manifest.get("next"):
        lines.append(f"next: {manifest['next']}")
    return lines


def headline(path: str, manifest: dict[str, Any]) -> str:
    """What is at a path, and what made it."""
    command = manifest.get("command", "")
    return f"{path}: {_MEANINGS.get(command, 'artifact')}, made by bert-pipeline {command}"


def leaves(mapping: dict[str, Any], *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values of nested mappings that say something, with the keys that lead to each."""
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield from leaves(value, *path, key)
        elif value not in (None, [], ""):
            yield (*path, key), value


def _mapping_lines(title: str, mapping: dict[str, Any]) -> list[str]:
    lines = []
    for (*groups, key), value in leaves(mapping):
        shown = f"{value:.4f}" if isinstance(value, float) else value
        lines.append(f"{' '.join((title, *groups))}: {key} = {shown}")
    return lines


def content_lines(manifest: dict[str, Any], path: Path, *, samples: int) -> list[str]:
    """Some of the content of anything but pretraining records."""
    command = manifest.get("command", "")
    if command in ("train", "finetune"):
        return loss_curve_lines(path / "metrics.jsonl")
    if command == "evaluate":
        return _first_lines(path / "predictions.jsonl", samples)
    if command == "vocab":
        return _vocabulary_lines(path, samples)
    if command == "score" and path.is_file():
        return _first_lines(path, samples)
    if command in ("export", "import-weights"):
        return _model_lines(path)
    return []


def _first_lines(path: Path, number: int) -> list[str]:
    with open_text(path, newline="\n") as stream:
        return [f"sample: {line.rstrip()}" for line in itertools.islice(stream, number)]


def _vocabulary_lines(path: Path, samples: int) -> list[str]:
    pieces = path.read_text(encoding="utf-8").splitlines()
    continued = sum(piece.startswith("##") for piece in pieces)
    longest = sorted(pieces, key=len, reverse=True)[:samples]
    return [
        f"pieces: {len(pieces)}, of them {continued} continue a word",
        f"longest: {' '.join(longest)}",
    ]


def _model_lines(path: Path) -> list[str]:
    lines = []
    for name in ("config.json", "task.json"):
        if (path / name).is_file():
            content = json.loads((path / name).read_text(encoding="utf-8"))
            lines += _mapping_lines(name, content)
    return lines
