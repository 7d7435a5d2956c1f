"""`bert-pipeline verify`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import click

from bert_tf.base.wording import quantity, shown_size
from pipeline.cli.usage import HELP_FLAGS, InputPath, PlainCommand


@click.command("verify", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=InputPath("any"))
@click.option("--json", "as_json", is_flag=True, help="print the findings as JSON")
def command(paths: tuple[str, ...], as_json: bool) -> int:
    """Compares the files of artifacts with the SHA-256 checksums in their manifests.

    Reads every file in full. Exits with 1 if a file is missing or has changed.

    \b
    Example:
      bert-pipeline verify model scored.csv
    """
    findings = []
    for path in paths:
        finding = _verify(path)
        findings.append(finding)
        for line in finding.lines():
            click.echo(line, err=as_json)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(each) for each in findings], indent=2))
    return 0 if all(finding.is_whole for finding in findings) else 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Verified:
    path: str
    is_whole: bool
    files: int
    bytes: int
    differences: list[str]

    def lines(self) -> Iterator[str]:
        files = quantity(self.files, "file")
        if not self.files:
            yield f"{self.path}: FAILED, its manifest lists no files; make it again"
            return
        for difference in self.differences:
            yield f"{self.path}: {difference}"
        if self.differences:
            yield f"{self.path}: FAILED, {len(self.differences):,} of {files} not as written"
        else:
            yield f"{self.path}: OK, {files} as written ({shown_size(self.bytes)})"


def _verify(path: str) -> _Verified:
    from pipeline.report.artifact import require_manifest
    from pipeline.report.files_check import file_differences

    outputs = require_manifest(path).get("outputs", [])
    differences = list(file_differences(Path(path), outputs, lambda size: True))
    return _Verified(
        path=path,
        is_whole=bool(outputs) and not differences,
        files=len(outputs),
        bytes=sum(each["bytes"] for each in outputs),
        differences=differences,
    )
