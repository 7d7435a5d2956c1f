"""`bert-pipeline preprocess`."""

from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from pipeline.cli.command import job_command

command = job_command(
    "preprocess",
    PreprocessConfig,
    RunnerConfig,
    job="pipeline.jobs.pretraining_examples",
    summary=(
        "Writes TFRecords for masked-LM and next-sentence prediction, which the trainers of "
        "google-research/bert, TF Model Garden and NVIDIA also read."
    ),
    example="bert-pipeline preprocess --input 'corpus/*.txt.gz' --vocab vocab.txt --output data",
    has_rows=True,
    has_health=True,
)
