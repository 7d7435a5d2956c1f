"""`bert-pipeline score`."""

from bert_tf.config.sections import RunnerConfig, ScoreConfig
from pipeline.cli.command import job_command

command = job_command(
    "score",
    ScoreConfig,
    RunnerConfig,
    job="pipeline.jobs.scoring",
    summary=(
        "Writes every input row in input order, its columns untouched, with the model's "
        "predictions beside them."
    ),
    example="bert-pipeline score --model complaints-model --input new.csv --output scored.csv",
    has_rows=True,
)
