"""`bert-pipeline export`: one command whose options are also those of the task it is given."""

from __future__ import annotations

from bert_tf.config.section import Section
from bert_tf.config.sections import ExportConfig
from bert_tf.config.variants import Variants
from bert_tf.tasks.registry import pretrained_tasks
from pipeline.cli.command import JobCall
from pipeline.cli.config_options import JobCommand

_TASKS = pretrained_tasks()
_SUMMARY = (
    "Exports a run as a SavedModel that takes raw text, or in the format of HuggingFace, "
    "sentence-transformers, KerasHub or google-research/bert. With --task, "
    "--help also shows the options of the task."
)
_EXAMPLES = "\n".join(
    (
        "bert-pipeline export --run complaints --output complaints-model",
        *(task.example for task in _TASKS.values()),
    )
)


def _command(
    section: type[Section] | Variants, summary: str = _SUMMARY, example: str = _EXAMPLES
) -> JobCommand:
    call = JobCall(
        name="export",
        sections=(section,),
        job="pipeline.jobs.exporting",
        summary=summary,
        example=example,
    )
    return call.command()


command = _command(
    Variants(
        common=ExportConfig,
        key="task",
        sections={name: task.options for name, task in _TASKS.items()},
    )
)
command.helps = {
    "": _command(ExportConfig),
    **{
        name: _command(
            task.options, f"Exports a pretrained model that predicts {task.summary}.", task.example
        )
        for name, task in _TASKS.items()
    },
}
