"""`bert-pipeline finetune`: one command whose options are those of the task it is given."""

from __future__ import annotations

import click

from bert_tf.config.section import Section
from bert_tf.config.sections import FinetuneConfig
from bert_tf.config.variants import Variants
from bert_tf.tasks.registry import TASKS
from pipeline.cli.command import JobCall
from pipeline.cli.config_options import JobCommand

_EXAMPLES = "\n".join(task.example for task in TASKS.values())


def _command(section: type[Section] | Variants, summary: str, example: str) -> JobCommand:
    call = JobCall(
        name="finetune",
        sections=(section,),
        job="pipeline.jobs.finetuning",
        summary=summary,
        example=example,
        resumes=True,
        has_rows=True,
        max_rejects="10%",
    )
    return call.command()


def _list_tasks() -> str:
    width = max(map(len, TASKS))
    return "\n".join(f"  {name:{width}}  {task.summary}" for name, task in TASKS.items())


_SUMMARY = (
    "Fine-tunes a model on labeled rows. bert-pipeline finetune TASK --help also shows the options "
    f"of that task.\n\n\b\nTasks:\n{_list_tasks()}"
)

command = _command(
    Variants(
        common=FinetuneConfig,
        key="task",
        sections={name: task.options for name, task in TASKS.items()},
    ),
    _SUMMARY,
    _EXAMPLES,
)
command.helps = {
    "": _command(FinetuneConfig, _SUMMARY, _EXAMPLES),
    **{
        name: _command(
            task.options, f"Fine-tunes a model that predicts {task.summary}.", task.example
        )
        for name, task in TASKS.items()
    },
}
for _name in TASKS:
    _argument = next(p for p in command.helps[_name].params if isinstance(p, click.Argument))
    _argument.metavar = _name
