"""`bert-pipeline evaluate`."""

from bert_tf.config.sections import EvaluateConfig
from pipeline.cli.command import job_command

command = job_command(
    "evaluate",
    EvaluateConfig,
    job="pipeline.jobs.evaluation",
    summary="Evaluates a fine-tuned run or an exported model on labeled rows.",
    example="bert-pipeline evaluate --model complaints --data test.csv --output complaints-test",
    has_rows=True,
    max_rejects="10%",
)
