"""`bert-pipeline inspect`."""

import json

import click

from bert_tf.base.errors import UsageError
from pipeline.cli.startup.third_party_output import VERBOSE_HELP, filtered_third_party_output
from pipeline.cli.usage import HELP_FLAGS, InputPath, PathText, PlainCommand


@click.command("inspect", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("path", metavar="PATH", type=InputPath("files"))
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="number of examples or rows to show",
)
@click.option(
    "--all-settings", is_flag=True, help="show the config keys that have their defaults, too"
)
@click.option("--html", metavar="FILE", type=PathText(), help="write a web page with plots instead")
@click.option(
    "--vocab",
    metavar="FILE",
    type=InputPath("file"),
    help="with --html, of a corpus: find its unknown words",
)
@click.option("--cased", is_flag=True, help="that vocabulary is cased")
@click.option(
    "--text-column",
    default="text",
    show_default=True,
    help="with --html, of a corpus: column or JSON key that holds the text",
)
@click.option("--overwrite", is_flag=True, help="let --html replace a file that is not such a page")
@click.option("--json", "as_json", is_flag=True, help="print the manifest as JSON instead")
@click.option("--verbose", is_flag=True, help=VERBOSE_HELP)
def command(
    path: str,
    samples: int,
    all_settings: bool,
    html: str | None,
    vocab: str | None,
    cased: bool,
    text_column: str,
    overwrite: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Shows the config, counts and metrics of the artifact at PATH, and samples from it.

    With --html, PATH may also be a corpus, a file or a quoted glob, before anything is made from
    it: its scripts, lengths, copies and unknown words, and what rules of preprocess leave out.

    \b
    Example:
      bert-pipeline inspect data
      bert-pipeline inspect data --html data.html
      bert-pipeline inspect 'corpus/*.txt.gz' --html corpus.html --vocab vocab.txt
    """
    with filtered_third_party_output(verbose=verbose):
        if html is not None and not as_json:
            from pipeline.jobs.page import is_corpus, write_corpus_page

            if is_corpus(path):
                write_corpus_page(
                    path,
                    html,
                    text_column=text_column,
                    vocab=vocab,
                    lowercase=False if cased else None,
                    samples=samples,
                    overwrite=overwrite,
                )
                click.echo(f"{html}: open it in a browser", err=True)
                return
        given = {"--vocab": vocab is not None, "--cased": cased}
        given["--text-column"] = text_column != "text"
        if any(given.values()):
            flags = ", ".join(flag for flag, is_given in given.items() if is_given)
            raise UsageError(
                f"{flags}: for the page of a corpus alone, with --html and without --json; PATH is "
                "a file of text or a quoted glob"
            )
        _inspect(path, samples, all_settings, html, overwrite, as_json)


def _inspect(
    path: str, samples: int, all_settings: bool, html: str | None, overwrite: bool, as_json: bool
) -> None:
    from pipeline.report.artifact import describe_artifact, require_manifest

    if as_json:
        click.echo(json.dumps(require_manifest(path), indent=2, ensure_ascii=False))
        return
    if html is not None:
        from pipeline.jobs.page import write_page

        write_page(path, html, samples=samples, overwrite=overwrite)
        click.echo(f"{html}: open it in a browser", err=True)
        return
    for line in describe_artifact(path, samples=samples, all_settings=all_settings):
        click.echo(line)
