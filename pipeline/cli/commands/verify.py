"""`bert-pipeline verify`."""

import dataclasses
import json

import click

from pipeline.cli.usage import HELP_FLAGS, InputPath, PlainCommand


@click.command("verify", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=InputPath("any"))
@click.option("--json", "as_json", is_flag=True, help="print the findings as JSON")
def command(paths: tuple[str, ...], as_json: bool) -> int:
    """Compares the files of artifacts with the SHA-256 in their manifests.

    Every file is read in full. Exits with 1 if any is missing or not what was written.

    \b
    Example:
      bert-pipeline verify model scored.csv
    """
    from pipeline.jobs.verification import verify

    findings = []
    for path in paths:
        finding = verify(path)
        findings.append(finding)
        for line in finding.lines():
            click.echo(line, err=as_json)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(each) for each in findings], indent=2))
    return 0 if all(finding.is_whole for finding in findings) else 1
