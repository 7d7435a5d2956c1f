"""`bert-pipeline`: finds the command, runs it, turns failures into one line and an exit code.

A new command needs a line in `COMMANDS`, and a `JobCall` in `jobs.py` or a function in a file of
`_FILES`.
"""

from __future__ import annotations

import errno
import gc
import importlib
import keyword
import os
import sys
import traceback

import click

from bert_tf.base.errors import BertPipelineError, GraphWritten, InputError, StoppedEarly
from bert_tf.base.wording import did_you_mean, printable
from bert_tf.engines.registry import declare_frozen_weights
from pipeline.beam.workers import failure_in, system_error
from pipeline.cli.startup import Terminated, keep_freed_memory, raising_on_signals, share_gpus
from pipeline.cli.usage import HELP_FLAGS, explain_usage
from pipeline.outputs.job_log import LogNote

_CURES = {
    errno.ENOSPC: "no space left on device; free some space, then run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space, then run the same command again",
    errno.EROFS: "the file system is read-only; choose another path",
    errno.EFBIG: "the file is larger than its file system or `ulimit -f` allows; choose another "
    "path, or raise the limit",
    errno.EACCES: "permission denied; change its owner or mode, or choose another path",
    errno.EMFILE: "too many open files; raise the limit with `ulimit -n`",
}
COMMANDS = {
    "init": "inspect labeled rows and write a config to fine-tune on them",
    "vocab": "build a WordPiece vocabulary from a corpus",
    "preprocess": "write masked-LM and next-sentence TFRecords from a corpus",
    "train": "pretrain BERT on TFRecords",
    "finetune": "fine-tune a model for a task on labeled rows",
    "label-errors": "find labeled rows that are likely mislabeled",
    "evaluate": "evaluate a fine-tuned model on labeled rows",
    "export": "export a run as a SavedModel for raw text, or in the format of another library",
    "score": "add predictions to CSV, TSV, JSONL or Parquet files",
    "try": "try a model in the browser: type a text, see the predictions",
    "embed": "write embeddings of the texts of tables",
    "search": "find the nearest texts of a corpus for every query",
    "summarize": "add extractive summaries to the documents of tables",
    "import-weights": "convert HuggingFace, KerasHub or Google weights to a model directory",
    "inspect": "show the config, counts, metrics and samples of an artifact",
    "report": "write a web page that compares runs: curves, settings, data, evaluations",
    "verify": "compare the files of artifacts with the checksums in their manifests",
    "lineage": "show the inputs of an artifact, back to the raw files",
    "demo": "run the whole pipeline on this machine in a few minutes",
    "schema": "print the JSON Schema of config files",
    "doctor": "check this machine and the installation",
}
_FILES = {  # of commands that are no jobs
    **dict.fromkeys(("inspect", "report", "verify", "lineage"), "artifacts"),
    **dict.fromkeys(("init", "try", "demo", "schema", "doctor"), "first_steps"),
}
RUN_MODELS = frozenset(
    (
        "init",
        "train",
        "finetune",
        "label-errors",
        "evaluate",
        "score",
        "try",
        "embed",
        "search",
        "summarize",
        "demo",
    )
)


class LazyGroup(click.Group):
    """Imports a command's module only when the command is needed, so that help is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the data flow."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command by its name; None for an unknown name."""
        if name not in COMMANDS:
            return None
        if name not in _FILES:
            from pipeline.cli.jobs import JOBS

            return JOBS[name].command()
        module = importlib.import_module(f"pipeline.cli.{_FILES[name]}")
        # `try` is a word of Python, so its function is called `try_`.
        attribute = f"{name}_" if keyword.iskeyword(name) else name
        command: click.Command = getattr(module, attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]):
        """Return the command of the arguments; name the nearest one for an unknown name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            cure = did_you_mean(args[0], COMMANDS, otherwise=f"known: {', '.join(COMMANDS)}")
            raise click.UsageError(f"no command {args[0]!r}; {cure}", ctx)
        return super().resolve_command(ctx, args)


def _show_versions(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        from pipeline.outputs.manifest import package_versions

        for name, version in package_versions().items():
            click.echo(f"{name} {version}")
        context.exit()


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings=HELP_FLAGS)
@click.option(
    "--version",
    is_flag=True,
    callback=_show_versions,
    expose_value=False,
    is_eager=True,
    help="show the version of bert-pipeline and its main dependencies, and exit",
)
@click.pass_context
def bert_pipeline(context: click.Context) -> None:
    """BERT from raw text to scored files.

    \b
    Data flow:
      vocab -> preprocess -> train -> finetune -> evaluate, export -> score

    Every command has --help with an example. Logs go to stderr, results to stdout.
    Exit codes: 0 success, 1 the job failed, 2 invalid usage or config, 3 more rows rejected than
    --max-rejects allows, 130 and 143 stopped by Ctrl-C and SIGTERM (train and finetune save a
    checkpoint first; the same command resumes).
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit with its code.

    Args:
        arguments: without the program's name; by default those of this process.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in RUN_MODELS:
        keep_freed_memory()
    if arguments is None and words and words[0] in COMMANDS:
        share_gpus(runs_models=words[0] in {*RUN_MODELS, "doctor"})
    if arguments is None and words[:1] == ["score"]:
        declare_frozen_weights()
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    code = _run(arguments)
    if code:
        # Objects in a failure's traceback have to be freed before Python ends: TensorFlow's
        # iterators over generators call Python when they are freed, and would warn without it.
        gc.collect()
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    """Run the command line, and return its exit code."""
    try:
        with raising_on_signals():
            return bert_pipeline.main(arguments, "bert-pipeline", standalone_mode=False) or 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        click.echo(printable(f"error: {explain_usage(error)}"), err=True)
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; run the same command again to resume", err=True)
        return 130
    except Terminated:
        click.echo("stopped by SIGTERM; run the same command again to resume", err=True)
        return 143
    except Exception as error:
        return _explain(error)


def _explain(error: Exception) -> int:
    """Print a failure in one line for the user, and return its exit code."""
    known = _known_cause(error)
    if os.environ.get("BERT_PIPELINE_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(known, BertPipelineError):
        label = "" if isinstance(known, GraphWritten | StoppedEarly) else "error: "
        for line in str(known).splitlines():
            click.echo(label + printable(line), err=True)
        if not isinstance(known, InputError) and known.exit_code == 1:
            _name_log(error)
        return known.exit_code
    click.echo(printable(f"error: {_explanation(error, known)}"), err=True)
    _name_log(error)
    return 1


def _explanation(error: Exception, known: BaseException | None) -> str:
    """Explain an unexpected error in one line."""
    failed = failure_in(str(error))
    if failed is not None and not isinstance(known, OSError):
        known = system_error(*failed)
    if isinstance(known, OSError):
        reason = _CURES.get(known.errno or 0) or known.strerror or str(known)
        return f"{known.filename}: {reason}" if known.filename else reason
    if isinstance(error, MemoryError):
        return "out of memory; close other programs, or use a machine with more"
    if "tensorflow" in sys.modules:
        from bert_tf.training.memory import is_out_of_memory

        if is_out_of_memory(error):
            return (
                "TensorFlow ran out of memory; lower batch_size (for score, batch_tokens), or "
                "raise gradient_accumulation_steps if the command has it"
            )
    if failed is None:
        lines = str(error).strip().splitlines()
        failed = type(error).__name__, lines[0] if lines else ""
    name, message = failed
    return (
        f"unexpected {name}: {message} "
        "(set BERT_PIPELINE_TRACEBACK=1 to see where, and please report it)"
    )


def _name_log(error: Exception) -> None:
    """Point to the log, unless the error is complete without it."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, LogNote):
            click.echo(f"log: {note}", err=True)


def _known_cause(error: BaseException) -> BaseException | None:
    """Return the first error in the chain of causes that has an explanation of its own."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, BertPipelineError | OSError):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None
