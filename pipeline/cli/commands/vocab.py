"""`bert-pipeline vocab`."""

from bert_tf.config.sections import RunnerConfig, VocabConfig
from pipeline.cli.command import job_command

command = job_command(
    "vocab",
    VocabConfig,
    RunnerConfig,
    job="pipeline.jobs.vocabulary",
    summary="Counts the words of a corpus and learns a WordPiece vocabulary from them.",
    example="bert-pipeline vocab --input 'corpus/*.txt.gz' --output vocab.txt --vocab-size 30000",
    has_rows=True,
    has_health=True,
)
