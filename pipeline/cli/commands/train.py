"""`bert-pipeline train`."""

from bert_tf.config.sections import StorageConfig, TrainConfig
from pipeline.cli.command import job_command

command = job_command(
    "train",
    TrainConfig,
    StorageConfig,
    job="pipeline.jobs.pretraining",
    summary="Pretrains BERT on TFRecords with masked-LM and next-sentence losses.",
    example="bert-pipeline train --data data --output run --size tiny --steps 10000",
    resumes=True,
)
