"""`bert-pipeline import-weights`."""

from bert_tf.config.sections import ImportWeightsConfig
from pipeline.cli.command import job_command

command = job_command(
    "import-weights",
    ImportWeightsConfig,
    job="pipeline.jobs.import_weights",
    summary=(
        "Converts BERT weights from HuggingFace, KerasHub, Google or TF Model Garden to a model "
        "directory."
    ),
    example="bert-pipeline import-weights all-MiniLM-L6-v2 --output minilm",
)
