"""`bert-pipeline report`."""

import json

import click

from pipeline.cli.startup import VERBOSE_HELP, filtered_third_party_output
from pipeline.cli.usage import HELP_FLAGS, InputPath, PathText, PlainCommand


@click.command("report", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=InputPath("folder"))
@click.option(
    "--output", metavar="FILE", type=PathText(), required=True, help="page to write (page.html)"
)
@click.option(
    "--text",
    "texts",
    metavar="TEXT",
    multiple=True,
    help="text to show attention, nearest words and predictions for; pretrained models predict its "
    "[MASK]; repeatable",
)
@click.option(
    "--text-pair",
    "pairs",
    metavar="TEXT TEXT",
    nargs=2,
    multiple=True,
    help="the same for a pair of texts, such as a question and its context; repeatable",
)
@click.option(
    "--overwrite", is_flag=True, help="replace a file that is not a page of report or inspect"
)
@click.option("--json", "as_json", is_flag=True, help="print the runs and the output path as JSON")
@click.option("--verbose", is_flag=True, help=VERBOSE_HELP)
def command(
    runs: tuple[str, ...],
    output: str,
    texts: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    overwrite: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Shows runs of train and finetune side by side as one web page.

    The page has their curves, settings, data and evaluations, and needs no network. Unfinished
    runs are shown up to their latest step.

    \b
    Example:
      bert-pipeline report run --output run.html
      bert-pipeline report slow fast --output rates.html
      bert-pipeline report run --output run.html --text "Rome is the [MASK] of Italy."
      bert-pipeline report answers --output page.html --text-pair "Who built it?" "Ada built it."
    """
    with filtered_third_party_output(verbose=verbose):
        from pipeline.jobs.page import write_runs_page

        write_runs_page(runs, output, texts=texts, pairs=pairs, overwrite=overwrite)
        click.echo(f"{output}: open it in a browser", err=True)
    if as_json:
        click.echo(json.dumps({"runs": list(runs), "output": output}, ensure_ascii=False))
