"""`bert-pipeline bench`."""

from __future__ import annotations

from bert_tf.config.sections import BenchConfig
from pipeline.cli.command import JobCall

command = JobCall(
    name="bench",
    sections=(BenchConfig,),
    job="pipeline.jobs.glue.benchmark",
    summary=(
        "Fine-tunes a model for every task of GLUE with several seeds, and measures it on the "
        "development rows by the benchmark's metrics. Tasks that are done are not repeated."
    ),
    example="bert-pipeline bench glue --init run/best --data glue --output glue-results",
    resumes=True,
    has_rows=True,
    max_rejects="10%",
).command()
