"""`bert-pipeline lineage`."""

import json

import click

from pipeline.cli.usage import HELP_FLAGS, InputPath, PlainCommand


@click.command("lineage", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("path", metavar="PATH", type=InputPath("any"))
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="readable lines or nested JSON",
)
def command(path: str, style: str) -> None:
    """Shows the inputs of the artifact at PATH, back to the raw files.

    Changed or missing inputs are reported.

    \b
    Example:
      bert-pipeline lineage scored.csv
      bert-pipeline lineage scored.csv --format json
    """
    from pathlib import Path

    from pipeline.report.artifact import require_manifest
    from pipeline.report.lineage import lineage_json, lineage_lines, trace

    made = trace(Path(path), require_manifest(path))
    if style == "json":
        click.echo(json.dumps(lineage_json(made), indent=2, ensure_ascii=False))
        return
    for line in lineage_lines(made):
        click.echo(line)
