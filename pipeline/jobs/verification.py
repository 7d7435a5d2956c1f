"""`bert-pipeline verify`: every byte of an artifact against its manifest."""

from __future__ import annotations

from pathlib import Path

import click

from bert_tf.base.wording import quantity, shown_size
from pipeline.report.artifact import require_manifest
from pipeline.report.files_check import file_differences


def verify(path: str) -> bool:
    """Compares all files of an artifact with its manifest, and prints what it finds.

    Args:
        path: file or folder with a manifest.

    Returns:
        Whether every file is what was written.

    Raises:
        UsageError: there is nothing at `path`, or nothing that this tool made.
        InputError: the output is not finished, or its manifest is damaged.
    """
    outputs = require_manifest(path).get("outputs", [])
    size = shown_size(sum(each["bytes"] for each in outputs))
    files = quantity(len(outputs), "file")
    if not outputs:
        click.echo(f"{path}: FAILED, its manifest lists no files; make it again")
        return False
    differences = list(file_differences(Path(path), outputs, lambda size: True))
    for difference in differences:
        click.echo(f"{path}: {difference}")
    if differences:
        click.echo(f"{path}: FAILED, {len(differences):,} of {files} not as written")
        return False
    click.echo(f"{path}: OK, {files} as written ({size})")
    return True
