"""`bert-pipeline inspect`."""

import json
from typing import Any

import click

from bert_tf.base.errors import UsageError
from bert_tf.config.resolve import resolve
from bert_tf.config.sections.data import PreprocessConfig
from pipeline.cli.startup import VERBOSE_HELP, filtered_third_party_output
from pipeline.cli.usage import HELP_FLAGS, InputPath, PathText, PlainCommand

# What only the page of a corpus takes.
_FLAGS = {
    "vocab": "--vocab",
    "cased": "--cased",
    "text_column": "--text-column",
    "encoding": "--encoding",
    "header": "--header/--no-header",
    "assignments": "--set",
}


@click.command("inspect", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("path", metavar="PATH", type=InputPath("any"))
@click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="number of examples or rows to show",
)
@click.option("--all-settings", is_flag=True, help="also show config keys with default values")
@click.option("--html", metavar="FILE", type=PathText(), help="write a web page with plots instead")
@click.option(
    "--vocab",
    metavar="FILE",
    type=InputPath("file"),
    help="with --html, for a corpus: vocabulary to find unknown words with",
)
@click.option("--cased", is_flag=True, default=None, help="the vocabulary is cased")
@click.option(
    "--text-column",
    metavar="NAME",
    help="with --html, for a corpus: column or JSON key of the text [default: text]",
)
@click.option("--encoding", metavar="NAME", help="with --html, for a corpus: character encoding")
@click.option(
    "--header/--no-header",
    default=None,
    help="with --html, for a corpus: read column names from the first line of CSV and TSV files",
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="with --html, for a corpus: set a key of preprocess (preprocess.format=text); repeatable",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="let --html replace a file that is not a page of inspect or report",
)
@click.option("--json", "as_json", is_flag=True, help="print the manifest as JSON instead")
@click.option("--verbose", is_flag=True, help=VERBOSE_HELP)
def command(
    path: str,
    samples: int,
    all_settings: bool,
    html: str | None,
    overwrite: bool,
    as_json: bool,
    verbose: bool,
    **of_corpus: Any,
) -> None:
    """Shows the config, counts, metrics and samples of the artifact at PATH.

    With --html, PATH may also be a corpus (a file or a quoted glob): the page shows its scripts,
    lengths, duplicates and unknown words, and the documents that preprocess would drop.

    \b
    Example:
      bert-pipeline inspect data
      bert-pipeline inspect data --html data.html
      bert-pipeline inspect 'corpus/*.txt.gz' --html corpus.html --vocab vocab.txt
    """
    with filtered_third_party_output(verbose=verbose):
        given = [flag for key, flag in _FLAGS.items() if _is_given(of_corpus[key])]
        if html is not None and not as_json:
            from pipeline.jobs.page import is_corpus, write_corpus_page

            reading = _reading(path, of_corpus)
            if is_corpus(path, has_format=reading.format != "auto"):
                write_corpus_page(
                    reading,
                    html,
                    vocab=of_corpus["vocab"],
                    lowercase=False if of_corpus["cased"] else None,
                    samples=samples,
                    overwrite=overwrite,
                )
                click.echo(f"{html}: open it in a browser", err=True)
                return
        if given:
            raise UsageError(
                f"{', '.join(given)}: for the page of a corpus alone, with --html and without "
                "--json; PATH is a file of text or a quoted glob"
            )
        _inspect(path, samples, all_settings, html, overwrite, as_json)


def _is_given(value: Any) -> bool:
    return value is not None and value != ()


def _reading(path: str, of_corpus: dict[str, Any]) -> PreprocessConfig:
    """How `preprocess` reads a corpus with these flags."""
    flags = {key: of_corpus[key] for key in ("text_column", "encoding", "header")}
    others = {"input": (path,), "vocab": of_corpus["vocab"] or "vocab.txt", "output": "data"}
    return resolve(
        PreprocessConfig, assignments=of_corpus["assignments"], flags={**flags, **others}
    )


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
