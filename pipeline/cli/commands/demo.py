"""`bert-pipeline demo`."""

import json

import click

from bert_tf.base.console import Console
from pipeline.cli.startup import (
    QUIET_HELP,
    VERBOSE_HELP,
    filtered_third_party_output,
)
from pipeline.cli.usage import HELP_FLAGS, InputPath, PathText, PlainCommand
from pipeline.outputs.job import RunOptions


@click.command("demo", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.option(
    "--output", type=PathText(), default="demo-output", show_default=True, help="working directory"
)
@click.option(
    "--weights",
    metavar="FOLDER",
    type=InputPath("model"),
    help="pretrained weights to start fine-tuning from",
)
@click.option("--json", "as_json", is_flag=True, help="print the metrics as JSON")
@click.option("--quiet", is_flag=True, help=QUIET_HELP)
@click.option("--verbose", is_flag=True, help=VERBOSE_HELP)
def command(output: str, weights: str | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Runs the whole pipeline on this machine, from raw text to scored files, without a network.

    \b
    Example:
      bert-pipeline demo --output demo-output
    """
    with filtered_third_party_output(verbose=verbose) as own_stderr:
        from pipeline.demo.run import run

        metrics = run(output, weights, RunOptions(console=Console(own_stderr, quiet=quiet)))
    if as_json:
        click.echo(json.dumps(metrics, indent=2, ensure_ascii=False))
