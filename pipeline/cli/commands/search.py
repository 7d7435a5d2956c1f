"""`bert-pipeline search`."""

from bert_tf.config.sections import RunnerConfig, SearchConfig
from pipeline.cli.command import job_command

command = job_command(
    "search",
    SearchConfig,
    RunnerConfig,
    job="pipeline.jobs.searching",
    summary="Writes for every query the nearest texts of a corpus, by the vectors of a model.",
    example=(
        "bert-pipeline search --queries queries.csv --corpus texts.csv --model minilm "
        "--output results.jsonl"
    ),
)
