"""`bert-pipeline inspect`."""

import json

import click

from pipeline.cli.quiet_start import import_tensorflow_quietly


@click.command("inspect", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path")
@click.option("--samples", default=3, show_default=True, help="examples or rows to show")
@click.option("--json", "as_json", is_flag=True, help="print the manifest instead")
def command(path: str, samples: int, as_json: bool) -> None:
    """Tells what the artifact at PATH is: its config, counts and metrics, and samples of it.

    \b
    Example:
      bert-pipeline inspect data
    """
    import_tensorflow_quietly()
    from pipeline.report.artifact import describe_artifact, require_manifest

    if as_json:
        click.echo(json.dumps(require_manifest(path), indent=2, ensure_ascii=False))
        return
    for line in describe_artifact(path, samples=samples):
        click.echo(line)
