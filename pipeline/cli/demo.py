"""`bert-pipeline demo`."""

import json

import click

from bert_tf.config.console import Console
from pipeline.cli.quiet_start import import_tensorflow_quietly
from pipeline.cli.usage import HELP_FLAGS, PlainCommand
from pipeline.jobs.job import RunOptions


@click.command("demo", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.option("--output", default="demo-output", show_default=True, help="folder to work in")
@click.option("--weights", metavar="FOLDER", help="pretrained weights to fine-tune from")
@click.option("--json", "as_json", is_flag=True, help="print the metrics on stdout")
def command(output: str, weights: str | None, as_json: bool) -> None:
    """Runs the whole path, from raw text to scored files, on this machine and without a network.

    \b
    Example:
      bert-pipeline demo --output demo-output
    """
    import_tensorflow_quietly()
    from pipeline.jobs.demo import run

    metrics = run(output, weights, RunOptions(console=Console()))
    if as_json:
        click.echo(json.dumps(metrics, indent=2, ensure_ascii=False))
