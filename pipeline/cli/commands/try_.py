"""`bert-pipeline try`."""

import click

from bert_tf.base.console import Console
from pipeline.cli.startup import VERBOSE_HELP, filtered_third_party_output
from pipeline.cli.usage import HELP_FLAGS, InputPath, PlainCommand


@click.command("try", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("model", metavar="MODEL", type=InputPath("model"))
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="local port to serve the page on (0: any free port)",
)
@click.option("--verbose", is_flag=True, help=VERBOSE_HELP)
def command(model: str, port: int, verbose: bool) -> None:
    """Serves a page to try a model in the browser: type a text, see the predictions.

    MODEL is an export, a run of finetune, or its best/. Label probabilities are shown as bars,
    answers and entities are marked in the text. The page is only served on 127.0.0.1, and texts
    are neither stored nor logged. Stop with Ctrl-C.

    \b
    Example:
      bert-pipeline try complaints-model
      bert-pipeline try complaints --port 8001
    """
    with filtered_third_party_output(verbose=verbose) as own_stderr:
        console = Console(own_stderr)
        with console.waiting("try: loading libraries"):
            from pipeline.trying.server import serve

        serve(model, port=port, console=console)
