"""`bert-pipeline label-errors`: one command whose options are those of fine-tuning for its task."""

from __future__ import annotations

from bert_tf.config.sections import LabelErrorsConfig
from bert_tf.config.variants import Variants
from bert_tf.tasks.registry import label_error_tasks
from pipeline.cli.command import JobCall

_TASKS = label_error_tasks()

command = JobCall(
    name="label-errors",
    sections=(
        Variants(
            common=LabelErrorsConfig,
            key="task",
            sections={name: declared.options for name, declared in _TASKS.items()},
        ),
    ),
    job="pipeline.jobs.label_errors",
    summary=(
        "Finds labeled rows whose label is likely wrong, by predictions of models that were "
        "fine-tuned on other rows."
    ),
    example="\n".join(declared.example for declared in _TASKS.values()),
    resumes=True,
    has_rows=True,
    max_rejects="10%",
).command()
