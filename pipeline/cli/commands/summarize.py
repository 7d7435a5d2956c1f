"""`bert-pipeline summarize`."""

from bert_tf.config.sections import RunnerConfig, SummarizeConfig
from pipeline.cli.command import job_command

command = job_command(
    "summarize",
    SummarizeConfig,
    RunnerConfig,
    job="pipeline.jobs.summarizing",
    summary=(
        "Adds an extractive summary to every input row, in input order: the sentences that are "
        "most similar to the document and differ from each other, with their places in it."
    ),
    example="bert-pipeline summarize --model minilm --input articles.csv --output summaries.jsonl",
    has_rows=True,
)
