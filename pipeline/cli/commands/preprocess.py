"""`bert-pipeline preprocess`."""

from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from pipeline.cli.command import job_command

command = job_command(
    "preprocess",
    PreprocessConfig,
    RunnerConfig,
    job="pipeline.jobs.pretraining_examples",
    summary=(
        "Writes masked-LM + next-sentence-prediction TFRecords that the reference, "
        "TF Model Garden and NVIDIA trainers read."
    ),
    example="bert-pipeline preprocess --input 'corpus/*.txt.gz' --vocab vocab.txt --output data",
    has_rows=True,
)
