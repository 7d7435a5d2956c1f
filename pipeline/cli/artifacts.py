"""The commands that show and check artifacts: inspect, report, verify, lineage.

Docstrings of commands are their help.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import printable, quantity, shown_size
from bert_tf.config.resolve import resolve
from bert_tf.config.sections import PreprocessConfig
from pipeline.cli.startup import filtered_third_party_output
from pipeline.cli.usage import InputPath, PathText, plain_command, verbose_option


@plain_command("inspect")
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
@click.option(
    "--curation",
    multiple=True,
    metavar="RULES",
    help="with --html, for a corpus: curation rules to try, as for preprocess (gopher,c4,fineweb)",
)
@click.option(
    "--personal-data",
    multiple=True,
    metavar="KINDS",
    help="with --html, for a corpus: personal data to count and hide, as for preprocess (all)",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="FILES",
    type=InputPath("files"),
    help="with --html, for a corpus: files with text to look for in it, as for preprocess",
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
@verbose_option
def inspect(
    path: str,
    samples: int,
    all_settings: bool,
    html: str | None,
    overwrite: bool,
    as_json: bool,
    verbose: bool,
    **of_corpus: Any,
) -> None:
    """Show the config, counts, metrics and samples of the artifact at PATH.

    With --html, PATH may also be a corpus (a file or a quoted glob): the page shows its scripts,
    lengths, duplicates and unknown words, and the documents that preprocess would drop.

    \b
    Example:
      bert-pipeline inspect data
      bert-pipeline inspect data --html data.html
      bert-pipeline inspect 'corpus/*.txt.gz' --html corpus.html --vocab vocab.txt
    """
    with filtered_third_party_output(verbose=verbose):
        from pipeline.report.artifact import describe_artifact, require_manifest

        if html is not None and not as_json:
            from pipeline.jobs.page import is_corpus, write_corpus_page, write_page

            reading = _reading(path, of_corpus)
            if is_corpus(path, has_format=reading.format != "auto"):
                write_corpus_page(
                    reading,
                    html,
                    samples=samples,
                    overwrite=overwrite,
                    vocab=of_corpus["vocab"],
                    # None: the casing of the vocabulary is found by its manifest or entries.
                    lowercase=False if of_corpus["cased"] else None,
                )
            else:
                _check_none_given(of_corpus)
                write_page(path, html, samples=samples, overwrite=overwrite)
            click.echo(f"{html}: open it in a browser", err=True)
            return
        _check_none_given(of_corpus)
        if as_json:
            click.echo(json.dumps(require_manifest(path), indent=2, ensure_ascii=False))
            return
        for line in describe_artifact(path, samples=samples, all_settings=all_settings):
            click.echo(printable(line))


def _check_none_given(of_corpus: dict[str, Any]) -> None:
    """Refuse flags that are only for the page of a corpus."""
    named = [
        "/".join((*parameter.opts, *parameter.secondary_opts))
        for parameter in click.get_current_context().command.params
        if of_corpus.get(str(parameter.name)) not in (None, ())
    ]
    if named:
        raise UsageError(
            f"{', '.join(named)}: only for the page of a corpus, with --html and without "
            "--json; PATH is a file of text or a quoted glob"
        )


def _reading(path: str, of_corpus: dict[str, Any]) -> PreprocessConfig:
    """Return the config of `preprocess` for reading a corpus with these flags."""
    keys = ("text_column", "encoding", "header", "curation", "personal_data", "exclude")
    flags = {key: of_corpus[key] for key in keys}
    flags |= {"input": (path,), "vocab": of_corpus["vocab"] or "vocab.txt", "output": "data"}
    return resolve(PreprocessConfig, assignments=of_corpus["assignments"], flags=flags)


@plain_command("report")
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
@verbose_option
def report(runs: tuple[str, ...], output: str, as_json: bool, verbose: bool, **shown: Any) -> None:
    """Write a web page that compares runs of train and finetune.

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

        write_runs_page(runs, output, **shown)
        click.echo(f"{output}: open it in a browser", err=True)
    if as_json:
        click.echo(json.dumps({"runs": list(runs), "output": output}, ensure_ascii=False))


@plain_command("verify")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=InputPath("any"))
@click.option("--json", "as_json", is_flag=True, help="print the findings as JSON")
def verify(paths: tuple[str, ...], as_json: bool) -> int:
    """Compare the files of artifacts with the SHA-256 checksums in their manifests.

    Reads every file completely. Exits with code 1 if a file is missing or has changed.

    \b
    Example:
      bert-pipeline verify model scored.csv
    """
    findings = [_verify(path, err=as_json) for path in paths]
    if as_json:
        click.echo(json.dumps(findings, indent=2))
    return 0 if all(finding["is_whole"] for finding in findings) else 1


def _verify(path: str, *, err: bool) -> dict[str, Any]:
    """Compare an artifact with its manifest, print the differences, and return the finding."""
    from pipeline.report.artifact import file_differences, require_manifest

    outputs = require_manifest(path).get("outputs", [])
    differences = []
    if outputs:
        differences = list(file_differences(Path(path), outputs, lambda size: True))
    size = sum(output["bytes"] for output in outputs)
    files = quantity(len(outputs), "file")
    verdict = f"OK, {files} unchanged ({shown_size(size)})"
    if differences:
        verdict = f"FAILED, {len(differences):,} of {files} changed or missing"
    if not outputs:
        verdict = "FAILED, its manifest lists no files; make it again"
    for line in (*differences, verdict):
        click.echo(printable(f"{path}: {line}"), err=err)
    return {
        "path": path,
        "is_whole": bool(outputs) and not differences,
        "files": len(outputs),
        "bytes": size,
        "differences": differences,
    }


@plain_command("lineage")
@click.argument("path", metavar="PATH", type=InputPath("any"))
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="readable lines or nested JSON",
)
def lineage(path: str, style: str) -> None:
    """Show the inputs of the artifact at PATH, back to the raw files.

    Changed or missing inputs are reported.

    \b
    Example:
      bert-pipeline lineage scored.csv
      bert-pipeline lineage scored.csv --format json
    """
    from pipeline.report.artifact import require_manifest
    from pipeline.report.lineage import lineage_json, lineage_lines, trace

    made = trace(Path(path), require_manifest(path))
    if style == "json":
        click.echo(json.dumps(lineage_json(made), indent=2, ensure_ascii=False))
        return
    for line in lineage_lines(made):
        click.echo(printable(line))
