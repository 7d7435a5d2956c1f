"""`bert-pipeline embed`."""

from bert_tf.config.sections import EmbedConfig, RunnerConfig
from pipeline.cli.command import job_command

command = job_command(
    "embed",
    EmbedConfig,
    RunnerConfig,
    job="pipeline.jobs.embedding",
    summary=(
        "Writes a vector for the text of every input row, in input order, or with --tokens a "
        "vector for each of its tokens."
    ),
    example="bert-pipeline embed --model minilm --input texts.csv --output vectors.parquet",
    has_rows=True,
)
