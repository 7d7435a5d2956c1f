"""`bert-pipeline lineage`."""

import json

import click

from pipeline.cli.usage import HELP_FLAGS, InputPath, PlainCommand


@click.command("lineage", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("path", metavar="PATH", type=InputPath("any"))
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "openlineage"]),
    default="text",
    show_default=True,
    help="lines for people, nested JSON, or an OpenLineage event per line and job",
)
def command(path: str, style: str) -> None:
    """Shows what the artifact at PATH was made from, back to files that no job made.

    Inputs are compared with what was read; what changed since or is gone is said.

    \b
    Example:
      bert-pipeline lineage scored.csv
      bert-pipeline lineage scored.csv --format openlineage
    """
    from pathlib import Path

    from pipeline.lineage.openlineage import openlineage_events
    from pipeline.lineage.text import lineage_json, lineage_lines
    from pipeline.lineage.trace import trace
    from pipeline.report.artifact import require_manifest

    made = trace(Path(path), require_manifest(path))
    if style == "json":
        click.echo(json.dumps(lineage_json(made), indent=2, ensure_ascii=False))
        return
    for line in lineage_lines(made) if style == "text" else openlineage_events(made):
        click.echo(line)
