"""`bert-pipeline export`."""

from bert_tf.config.sections import ExportConfig
from bert_tf.tasks.pretrained import PRETRAINED_TASKS
from pipeline.cli.command import job_command

command = job_command(
    "export",
    ExportConfig,
    job="pipeline.jobs.exporting",
    summary=(
        "Exports a run as a SavedModel that takes raw text, or in the format of HuggingFace, "
        "sentence-transformers, KerasHub, google-research/bert or TF Model Garden."
    ),
    example=(
        "bert-pipeline export --run complaints --output complaints-model\n"
        f"bert-pipeline export --run bert --task {next(iter(PRETRAINED_TASKS))} --output filler"
    ),
)
