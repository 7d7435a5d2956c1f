"""`bert-pipeline finetune`."""

from bert_tf.config.sections import FinetuneConfig
from pipeline.cli.command import job_command

command = job_command(
    "finetune",
    FinetuneConfig,
    job="pipeline.jobs.finetuning",
    summary="Fine-tunes a model on labeled rows: text classification or question answering.",
    example=(
        "bert-pipeline finetune classification --train train.csv --eval dev.csv --init run "
        "--output complaints\n"
        "bert-pipeline finetune qa --train train-v1.1.json --eval dev-v1.1.json --init minilm "
        "--output qa"
    ),
    resumes=True,
    has_rows=True,
    max_rejects="10%",
)
