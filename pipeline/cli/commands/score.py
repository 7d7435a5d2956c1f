"""`bert-pipeline score`."""

from bert_tf.config.sections import RunnerConfig, ScoreConfig
from pipeline.cli.command import job_command

command = job_command(
    "score",
    ScoreConfig,
    RunnerConfig,
    job="pipeline.jobs.scoring",
    summary=(
        "Adds the model's predictions as columns to every input row, in input order and with all "
        "other columns unchanged."
    ),
    example="bert-pipeline score --model complaints-model --input new.csv --output scored.csv",
    has_rows=True,
)
